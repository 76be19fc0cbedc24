"""Shown cells in their order, passing over hidden ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from antiphon.widgets.block_list.height_index import HeightIndex


class CellOrder:
    """The cells of a list as one goes through them: 1 is downwards, -1 upwards."""

    def __init__(self, heights: HeightIndex, is_hidden: Callable[[str], bool]) -> None:
        self._heights = heights
        self._is_hidden = is_hidden

    def neighbour(self, block: str, direction: int) -> str | None:
        """Return the shown cell below (1) or above (-1)."""
        step = self._heights.next if direction > 0 else self._heights.previous
        return self._shown(step(block), step)

    def first(self) -> str | None:
        return self._shown(self._heights.first(), self._heights.next)

    def last(self) -> str | None:
        return self._shown(self._heights.last(), self._heights.previous)

    def is_first(self, block: str | None) -> bool:
        """Return whether no shown cell is above this one."""
        return block is not None and self.neighbour(block, -1) is None

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

    def _shown(self, block: str | None, step: Callable[[str], str | None]) -> str | None:
        while block is not None and self._is_hidden(block):
            block = step(block)
        return block
