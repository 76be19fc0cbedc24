"""Heights of cells out of view: new cells get a place, growing ones a guessed height."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.widgets.block_list.cell_model import BULK, CellModel
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon_kernel.document.changes import TextChange

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
                (block, known.get(block, GUESSED_ROWS)) for block in self._source.ids()
            )
            return
        for block in known:
            self._heights.remove(block)
        # In document order: what a block goes below is there before it.
        for block in sorted(blocks, key=lambda one: (self._source.header(one).order, one)):
            height = known.get(block, GUESSED_ROWS)
            self._heights.insert(block, height, after=self._source.block_before(block))
