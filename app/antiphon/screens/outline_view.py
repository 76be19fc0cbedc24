"""The outline kept up to date: headings and prompts around what is on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from antiphon.render.display import displayable_in_a_row
from antiphon.render.markdown_source import Heading, first_line, headings
from antiphon.widgets.block_list import Anchor, CellChange, CellModel, DocumentView
from antiphon.widgets.block_list.frame_scheduler import FrameScheduler
from antiphon.widgets.outline import Outline, OutlineEntry, OutlineState, Prompt
from antiphon_kernel.types.enums import BlockKind, Role

FRAME: Final = 1 / 5
"""Seconds between two updates of the outline."""

_FARTHEST: Final = 200
"""Cells above and below the view in which entries are looked for."""

_MOST_KEPT: Final = 1_000
"""Cells of which the entries are remembered."""

_START: Final = 400
"""Characters of a prompt that are looked at."""

_ANSWER_DEPTH: Final = 3
"""Steps from a block of an answer to the message that it answers."""

_READING_ROW: Final = 3
"""The row of the view in which reading is assumed."""


class OutlineView:
    """Collects the entries near the view, a few times a second at most.

    Nothing is done for cells that are far away, and only a text that has changed is read again.
    """

    def __init__(self, source: CellModel, area: DocumentView, outline: Outline) -> None:
        self._source = source
        self._area = area
        cells = self._cells = area.cells
        self._outline = outline
        self._clock = FrameScheduler(self.update, cells.call_next, cells.set_timer)
        self._headings: dict[str, Sequence[Heading]] = {}

    def start(self) -> tuple[Callable[[], None], ...]:
        """Keep the outline up to date, once the cells are mounted; returns the ways to stop."""
        return self._source.changed.listen(self._changed), self._cells.drawn.listen(self.request)

    def request(self) -> None:
        """Update the outline soon, if it is on the screen."""
        if self._outline.is_mounted and self._outline.display:
            self._clock.request_throttled(FRAME)

    def go(self, entry: OutlineEntry) -> None:
        """Show the place of an entry at the top of the view."""
        cells, block = self._cells, entry.block
        if not cells.has_cell(block) or self._source.is_hidden(block):
            return
        offset = min(entry.offset, len(self._source.text(block)))
        line = cells.shown.line_of(block, offset)
        cells.restore_view(Anchor(block, line, 1, offset))

    def _changed(self, change: CellChange) -> None:
        for text in change.texts:
            self._headings.pop(text.block, None)

    def update(self) -> None:
        self._clock.drawn()
        cells = self._cells
        places = [place for place in cells.viewport.places if place is not None]
        if not self._outline.display or not places:
            self._outline.show(OutlineState())
            return
        first, last = places[0], places[-1]
        seen = list(dict.fromkeys(place.block for place in places))
        room = self._outline.room
        above = list(self._near(seen[0], -1, room))[::-1]
        here = [entry for block in seen for entry in self._entries(block)]
        below = list(self._near(seen[-1], 1, room))
        entries = [*above, *here, *below]
        order = {block: index for index, block in enumerate(seen)}
        start, end = self._offset(first.block, first.line), self._offset(last.block, last.line)
        is_at_tail = cells.viewport.following
        reading = last if is_at_tail else places[min(_READING_ROW, len(places) - 1)]
        read_to = order[reading.block], self._offset(reading.block, reading.line)
        editor = self._area.editor
        if editor is not None and editor.block in order:
            read_to = order[editor.block], editor.cursor_offset
        current, shown = len(above) - 1, set()
        for index, entry in enumerate(here, len(above)):
            key = order[entry.block], entry.offset
            if key <= read_to:
                current = index
            if (0, start) <= key <= (order[last.block], end):
                shown.add(index)
        cut = max(0, min(current - room // 3, len(entries) - room))
        self._outline.show(
            OutlineState(
                tuple(entries[cut : cut + room]),
                frozenset(index - cut for index in shown),
                current - cut if current >= 0 else None,
                self._prompt(reading.block),
            )
        )
        if len(self._headings) > _MOST_KEPT:
            kept = self._headings.keys() & seen
            self._headings = {block: self._headings[block] for block in kept}

    def _offset(self, block: str, line: int) -> int:
        """Return the code point of the text that a line shows or that stands before it."""
        editor = self._area.editor
        if editor is not None and editor.block == block:
            return editor.offset_at_row(max(line, 0))
        return self._cells.shown.rendering(block).offset_at(max(line, 0), 0) or 0

    def _near(self, block: str, direction: int, room: int) -> Iterator[OutlineEntry]:
        """Yield entries beyond a cell, the nearest first."""
        count, at = 0, self._cells.order.neighbour(block, direction)
        for _ in range(_FARTHEST):
            if at is None or count >= room:
                return
            found = self._entries(at)
            count += len(found)
            yield from found if direction > 0 else reversed(found)
            at = self._cells.order.neighbour(at, direction)

    def _entries(self, block: str) -> Sequence[OutlineEntry]:
        header = self._source.header(block)
        if header.kind != BlockKind.TEXT:
            return ()
        if header.role == Role.USER:
            title = first_line(self._source.text(block)[:_START])
            colour = self._source.name(header.author)[1]
            return (OutlineEntry(block, 0, 0, title, colour),) if title else ()
        if (found := self._headings.get(block)) is None:
            found = self._headings[block] = headings(self._source.text(block))
        return tuple(
            OutlineEntry(block, one.offset, one.level, displayable_in_a_row(one.title))
            for one in found
        )

    def _prompt(self, block: str) -> Prompt | None:
        """Return the message that a cell belongs to the answer of."""
        document, at = self._source.document, self._source.header(block).parent
        for _ in range(_ANSWER_DEPTH):
            if at is None or at not in document:
                return None
            header = self._source.header(at)
            if header.role == Role.USER and header.kind == BlockKind.TEXT:
                name, colour = self._source.shown_name(header.author)
                words = " ".join(self._source.text(at)[:_START].split())
                return Prompt(name, colour, first_line(words))
            at = header.parent
        return None
