"""How high cells get that grow where nobody looks: a guess, at the cost of the new text only."""

from __future__ import annotations

from antiphon.blocklist.heights import Heights
from antiphon_kernel.document.changes import TextChange


class Growth:
    """Adds rows for text that arrives in cells outside the view."""

    def __init__(self, heights: Heights) -> None:
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
