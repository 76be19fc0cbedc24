"""Cells in order with their heights, which are guessed out of view, and steps between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from antiphon.widgets.block_list.cell_model import BULK, CellModel
from antiphon.widgets.prefix_sums import PrefixSums
from antiphon_kernel.document.changes import TextChange


class HeightIndex:
    """An ordered map from cell to height in rows. Rows and indexes count from 0.

    A change of height costs the square root of the number of cells; a cell that comes or goes
    costs as much as there are cells below it, which are few: documents grow at their end.
    """

    def __init__(self, cells: Iterable[tuple[str, int]] = ()) -> None:
        self.replace_all(cells)

    def replace_all(self, cells: Iterable[tuple[str, int]]) -> None:
        heights = dict(cells)
        self._keys = list(heights)
        self._index = {key: at for at, key in enumerate(self._keys)}
        self._rows = PrefixSums(heights.values(), chunk=256)

    @property
    def total(self) -> int:
        return self._rows.total

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __getitem__(self, key: str) -> int:
        return self._rows[self._index[key]]

    def index(self, key: str) -> int:
        """Return the number of cells before it. Raises KeyError."""
        return self._index[key]

    def first(self) -> str | None:
        return self._keys[0] if self._keys else None

    def last(self) -> str | None:
        return self._keys[-1] if self._keys else None

    def beside(self, key: str, direction: int) -> str | None:
        """The cell below (1) or above (-1). Raises KeyError."""
        at = self._index[key] + direction
        return self._keys[at] if 0 <= at < len(self._keys) else None

    def prefix(self, key: str) -> int:
        """Rows above the cell. Raises KeyError."""
        return self._rows.before(self._index[key])

    def find(self, row: int) -> tuple[str, int] | None:
        """The cell at a row and the row inside it; the nearest end outside; None without cells.

        Cells of no height are never found inside.
        """
        if not self._keys:
            return None
        index, inside = self._rows.find(row)
        return self._keys[index], inside

    def set(self, key: str, height: int) -> None:
        """Give a cell another height. Raises KeyError."""
        at = self._index[key]
        if height != self._rows[at]:
            self._rows.splice(at, at + 1, [height])

    def insert(self, key: str, height: int, *, after: str | None) -> None:
        """Put a new cell below `after`; None is the top. Raises KeyError."""
        at = 0 if after is None else self._index[after] + 1
        self._keys.insert(at, key)
        self._rows.splice(at, at, [height])
        self._renumber(at)

    def remove(self, key: str) -> None:
        """Raises KeyError."""
        at = self._index.pop(key)
        del self._keys[at]
        self._rows.splice(at, at + 1, ())
        self._renumber(at)

    def _renumber(self, start: int) -> None:
        for at in range(start, len(self._keys)):
            self._index[self._keys[at]] = at


GUESSED_ROWS = 4
"""Of a cell that was never drawn."""


class HeightEstimator:
    """Keeps the heights in step with a document, at the cost of what is new only."""

    def __init__(self, source: CellModel, heights: HeightIndex) -> None:
        self._source = source
        self._heights = heights
        self._columns: dict[str, int] = {}
        """Code points on the last line of cells that grew."""

    def grow(self, change: TextChange, width: int) -> None:
        """Follow a change of a cell that is not drawn now."""
        if change.block not in self._heights:
            return
        column = self._columns.get(change.block, 0)
        rows = 0
        for splice in change.splices:
            ended = splice.inserted.count("\n")
            if ended:
                rows += ended + max(0, len(splice.inserted) - ended * width) // width
                column = len(splice.inserted) - splice.inserted.rfind("\n") - 1
            else:
                column += len(splice.inserted)
            rows += column // width
            column %= width
        self._columns[change.block] = column
        if rows:
            self._heights.set(change.block, self._heights[change.block] + rows)

    def place(self, blocks: Sequence[str]) -> None:
        """Give new blocks, and those that moved, their place among the heights."""
        known = {block: self._heights[block] for block in blocks if block in self._heights}
        if len(blocks) > BULK:
            known |= {block: self._heights[block] for block in self._heights}
            self._heights.replace_all(
                (block, known.get(block, GUESSED_ROWS))
                for block in self._source.document.block_ids()
            )
            return
        for block in known:
            self._heights.remove(block)
        # In document order: what a block goes below is there before it.
        for block in sorted(blocks, key=lambda one: (self._source.header(one).order, one)):
            height = known.get(block, GUESSED_ROWS)
            self._heights.insert(block, height, after=self._source.block_before(block))


class CellOrder:
    """The cells of a list as one goes through them: 1 is downwards, -1 upwards."""

    def __init__(self, heights: HeightIndex, is_hidden: Callable[[str], bool]) -> None:
        self._heights = heights
        self._is_hidden = is_hidden

    def neighbour(self, block: str, direction: int) -> str | None:
        """Return the shown cell below (1) or above (-1)."""
        return self._shown(self._heights.beside(block, direction), direction)

    def first(self) -> str | None:
        return self._shown(self._heights.first(), 1)

    def last(self) -> str | None:
        return self._shown(self._heights.last(), -1)

    def is_last(self, block: str) -> bool:
        """Return whether no shown cell is below this one."""
        return self.neighbour(block, 1) is None

    def nearest(self, blocks: Iterable[str], start: str | None, direction: int) -> str | None:
        """Return the first of some cells below (1) or above (-1) a cell; from the end without."""
        places = sorted(
            (self._heights.index(block), block)
            for block in blocks
            if block in self._heights and not self._is_hidden(block)
        )
        if start is not None and start in self._heights:
            at = self._heights.index(start)
            places = [place for place in places if (place[0] - at) * direction > 0]
        if not places:
            return None
        return places[0 if direction > 0 else -1][1]

    def _shown(self, block: str | None, direction: int) -> str | None:
        while block is not None and self._is_hidden(block):
            block = self._heights.beside(block, direction)
        return block
