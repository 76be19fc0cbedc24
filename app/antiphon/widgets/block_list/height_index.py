"""Heights of cells in order: which cell is at a row, how many rows are above a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.widgets.prefix_sums import PrefixSums


class HeightIndex:
    """An ordered map from cell to height in rows. Rows and indexes count from 0.

    A change of height costs the square root of the number of cells; a cell that comes or goes
    costs as much as there are cells below it, which are few: documents grow at their end.
    """

    def __init__(self, cells: Iterable[tuple[str, int]] = (), *, chunk: int = 256) -> None:
        """`chunk` is that of `PrefixSums`."""
        self._chunk = chunk
        self.replace_all(cells)

    def replace_all(self, cells: Iterable[tuple[str, int]]) -> None:
        heights = dict(cells)
        self._keys = list(heights)
        self._index = {key: at for at, key in enumerate(self._keys)}
        self._rows = PrefixSums(heights.values(), chunk=self._chunk)

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

    def next(self, key: str) -> str | None:
        """The cell below. Raises KeyError."""
        below = self._index[key] + 1
        return self._keys[below] if below < len(self._keys) else None

    def previous(self, key: str) -> str | None:
        """The cell above. Raises KeyError."""
        at = self._index[key]
        return self._keys[at - 1] if at else None

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

    def set(self, key: str, height: int) -> int:
        """Give a cell another height; returns how many rows it grew. Raises KeyError."""
        at = self._index[key]
        grown = height - self._rows[at]
        if grown:
            self._rows.splice(at, at + 1, [height])
        return grown

    def insert(self, key: str, height: int, *, after: str | None) -> None:
        """Put a new cell below `after`; None is the top. Raises KeyError and ValueError."""
        if key in self._index:
            raise ValueError(f"the cell {key} is there already")
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
