"""Changes that arrived out of view."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.widgets.block_list.cell_model import CellChange
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon.widgets.block_list.viewport import LineRef, Viewport


class Unread:
    """Start of new text below the view, and the cells that changed unseen."""

    def __init__(self, heights: HeightIndex, viewport: Viewport) -> None:
        self._heights = heights
        self._viewport = viewport
        self._seen: LineRef | None = None
        """The first line below all that has been seen; None while the tail is followed."""
        self.start: LineRef | None = None
        """The line that new text starts at, while there is any."""
        self.blocks: dict[str, None] = {}
        """Cells that changed and were not seen since."""

    def cells(self) -> list[str]:
        start = [] if self.start is None else [self.start.block]
        return [*self.blocks, *start]

    def mark(
        self,
        change: CellChange,
        is_shown: Callable[[str], bool],
        is_hidden: Callable[[str], bool],
    ) -> None:
        """Note cells that changed out of sight; what a context is opened with is not new."""
        is_opening = len(change.added) == len(self._heights)
        for block in change.changed:
            if is_shown(block) or block not in self._heights:
                continue
            if is_hidden(block):
                self._heights.set(block, 0)
            elif (change.texts or change.added) and not is_opening:
                self.blocks[block] = None

    def grown_by_person(self, block: str, rows: int) -> None:
        """Count rows that the person's own edit has added to a cell as seen."""
        if self._seen is not None and self._seen.block == block:
            self._seen = self._seen._replace(line=self._seen.line + rows)

    def update(self) -> int:
        """Take notice of what the view shows; returns how many new lines are below it."""
        viewport = self._viewport
        for block in {place.block for place in viewport.places if place is not None}:
            self.blocks.pop(block, None)
        last = viewport.last_seen
        if viewport.following or viewport.is_at_tail or last is None:
            self._seen = self.start = None
            return 0
        if self._seen is None or self._seen.block not in self._heights:
            end = self._heights.last()
            assert end is not None
            self._seen = LineRef(end, self._heights[end])
        new = self._heights.total - self._row(self._seen)
        self.start = self._seen if new > 0 else None
        passed = LineRef(last.block, last.line + 1)
        if self._row(passed) > self._row(self._seen):
            self._seen = passed
        return max(0, self._heights.total - max(self._row(self._seen), self._row(passed)))

    def _row(self, place: LineRef) -> int:
        return self._heights.prefix(place.block) + min(
            max(place.line, 0), self._heights[place.block]
        )
