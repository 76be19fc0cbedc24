"""Long texts in segments, of which only those that are looked at are drawn.

A text is cut where drawing can start afresh, at places that depend on nothing but the text before
them: a text that grows is cut as one that is drawn when it is whole. A segment that was never drawn
has a guessed number of lines; `RenderedCell.settled` draws what a view needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple, Protocol

from antiphon.render.lines import CellChunk, RenderedCell
from antiphon_kernel.text.splice_diff import common_prefix, common_suffix

SEGMENT: Final = 4_096
"""Code points from which a segment ends at the next good place."""


LONGEST_LINE: Final = 4 * SEGMENT
"""Code points of a line behind which it is cut."""


NEWLINE: Final = re.compile(r"\n")
_LOOK_AHEAD: Final = 80


class SegmentStart(NamedTuple):
    """The place where a segment starts."""

    offset: int
    witness: int
    """The text up to here decides that a segment starts there."""
    state: Hashable
    """All that has to be known of the text before it."""


Renderer = Callable[[str], RenderedCell]
"""Draws a text again and again as it grows and is edited."""


class Cutter(Protocol):
    """Way to cut texts of one kind, and to draw what is between two cuts."""

    @property
    def initial(self) -> Hashable:
        """The state at the start of a text."""

    def next_start(self, text: str, start: SegmentStart) -> SegmentStart | None:
        """Return the start of the following segment; None while that is not known for certain."""

    def renderer(self, start: SegmentStart) -> Renderer:
        """Return a renderer of a segment's text, which counts offsets from its start."""

    @property
    def text_width(self) -> int:
        """Columns of a row of text, from which the lines that a part takes are guessed."""


def end_of_long_line(
    text: str, start: int, end: int, breaks: re.Pattern[str] = NEWLINE
) -> int | None:
    """Return where to cut a line that goes on too long, between `breaks`; None if none does.

    What follows the cut within a few characters has to be known: it is never inside a sequence that
    sets styles and, where there are spaces, not inside a word.
    """
    while end - start >= LONGEST_LINE + _LOOK_AHEAD:
        found = breaks.search(text, start, end)
        stop = end if found is None else found.start()
        if stop - start >= LONGEST_LINE + _LOOK_AHEAD:
            cut = start + LONGEST_LINE
            escape = text.rfind("\x1b", cut - _LOOK_AHEAD, cut)
            if escape > start:
                return escape
            space = text.rfind(" ", cut - _LOOK_AHEAD, cut) + 1
            return space or cut
        start = stop + 1
    return None


class TextSegment:
    """A part of a text and, if it is looked at, its picture."""

    def __init__(self, text: SegmentedText, start: SegmentStart) -> None:
        self._text = text
        self.start = start
        self.end: int | None = None
        """Behind the last code point; None for the last segment, which grows."""
        self._renderer: Renderer | None = None
        self.cell: RenderedCell | None = None
        self.line_count = 0
        """Guessed, unless it was drawn before."""
        self._is_known = False

    def draw(self) -> RenderedCell:
        """Draw it, if it is not drawn."""
        if self.cell is None:
            if self._renderer is None:
                self._renderer = self._text.cutter.renderer(self.start)
            self.cell = self._renderer(self._text.part(self))
            self._text.lines_drawn += self.cell.line_count
            self.line_count, self._is_known = self.cell.line_count, True
        return self.cell

    def release(self) -> None:
        """Let go of the picture; its height stays known."""
        self.cell = self._renderer = None

    def changed(self) -> None:
        """The text is another: a picture that is looked at is drawn again."""
        self._is_known = False
        if self.cell is not None:
            self.cell = None
            self.draw()

    def guess(self) -> None:
        """Guess the number of lines, if it is not known."""
        if not self._is_known:
            self.line_count = self._text.guess(self)

    def move(self, distance: int) -> None:
        """Follow text that came or went in front of it."""
        offset, witness, state = self.start
        self.start = SegmentStart(offset + distance, witness + distance, state)
        if self.end is not None:
            self.end += distance


class SegmentedText:
    """Renders a text again and again as it changes; a short one is a single segment."""

    def __init__(self, cutter: Cutter) -> None:
        self.cutter = cutter
        self.lines_drawn = 0
        """Lines that were drawn so far, for measuring."""
        self._content = ""
        self._segments = [TextSegment(self, SegmentStart(0, 0, cutter.initial))]

    def update(self, text: str) -> RenderedCell:
        """Draw a short text; of a long one, again what was drawn before and is another now."""
        old, self._content = self._content, text
        changed = self._segments[-1]
        followers: list[TextSegment] = []
        edit_end = 0
        if not text.startswith(old):
            kept = common_prefix(old, text)
            edit_end = len(old) - common_suffix(old, text, kept)
            count = 1
            while count < len(self._segments) and self._segments[count].start.witness <= kept:
                count += 1
            followers = self._segments[count:]
            del self._segments[count:]
            changed = self._segments[-1]
            changed.end = None
        self._cut(followers, edit_end, len(text) - len(old))
        if old != text:
            changed.changed()
        segments = self._segments
        if len(segments) == 1:
            segments[0].draw()
        for segment in segments:
            segment.guess()
        return self.cell()

    def _cut(self, followers: list[TextSegment], edit_end: int, distance: int) -> None:
        """Cut what follows the last segment; old segments behind the edit are taken over."""
        by_start = {
            (one.start.offset + distance, one.start.state): at
            for at, one in enumerate(followers)
            if one.start.offset >= edit_end
        }
        while True:
            last = self._segments[-1]
            start = self.cutter.next_start(self._content, last.start)
            if start is None:
                return
            last.end = start.offset
            at = by_start.get((start.offset, start.state))
            if at is not None:
                for segment in followers[at:]:
                    segment.move(distance)
                    self._segments.append(segment)
                by_start = {}
            else:
                self._segments.append(TextSegment(self, start))

    def cell(self) -> RenderedCell:
        if len(self._segments) == 1:
            return self._segments[0].draw()
        chunks: list[CellChunk] = []
        line = 0
        for segment in self._segments:
            start = segment.start.offset
            chunks.append(CellChunk(segment, start, line, self._end(segment) - start))
            line = chunks[-1].end_line
        return RenderedCell(chunks)

    def part(self, segment: TextSegment) -> str:
        return self._content[segment.start.offset : segment.end]

    def guess(self, segment: TextSegment) -> int:
        start, end, width = segment.start.offset, self._end(segment), self.cutter.text_width
        lines = self._content.count("\n", start, end)
        return max(1, lines + max(0, end - start - lines * width // 2) // width)

    def _end(self, segment: TextSegment) -> int:
        return len(self._content) if segment.end is None else segment.end
