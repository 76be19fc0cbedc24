"""From one shown cell to another."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon_kernel.types.enums import BlockKind


class CellNavigator:
    """Finds cells by their order; hidden ones are passed over."""

    def __init__(self, source: CellModel, heights: HeightIndex) -> None:
        self._source = source
        self._heights = heights

    def below(self, block: str) -> str | None:
        return self._shown(self._heights.next(block), self._heights.next)

    def above(self, block: str) -> str | None:
        return self._shown(self._heights.previous(block), self._heights.previous)

    def first(self) -> str | None:
        return self._shown(self._heights.first(), self._heights.next)

    def last(self) -> str | None:
        return self._shown(self._heights.last(), self._heights.previous)

    def neighbour(self, block: str, direction: int) -> str | None:
        """The cell below (1) or above (-1)."""
        return self.below(block) if direction > 0 else self.above(block)

    def nearest(self, blocks: Iterable[str], here: str | None, direction: int) -> str | None:
        """The first of some cells below (1) or above (-1) a cell; from the end without one."""
        places = sorted(
            (self._heights.index(block), block)
            for block in blocks
            if block in self._heights and not self._source.is_hidden(block)
        )
        if here is not None and here in self._heights:
            at = self._heights.index(here)
            places = [place for place in places if (place[0] - at) * direction > 0]
        if not places:
            return None
        return places[0 if direction > 0 else -1][1]

    def thinking(self) -> list[str]:
        """All cells of a model's thinking."""
        header = self._source.header
        return [block for block in self._heights if header(block).kind == BlockKind.THINKING]

    def _shown(self, block: str | None, step: Callable[[str], str | None]) -> str | None:
        while block is not None and self._source.is_hidden(block):
            block = step(block)
        return block
