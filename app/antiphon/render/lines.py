"""Rendered lines and the map between a block's text and its place on them.

Offsets count code points of the block's text; lines and columns count from 0 inside the cell.

Of a long text in segments only those that are looked at are drawn. It is cut where drawing can
start afresh, at places that depend on nothing but the text before them: a text that grows is cut as
one that is drawn when it is whole. A segment that was never drawn has a guessed number of lines;
`RenderedCell.settled` draws what a view needs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from rich.style import Style
from textual.strip import Strip

from antiphon_kernel.text.splice_diff import common_prefix, common_suffix

FOLD_MARKS: Final = ("▸", "▾")


class StyleSpan(NamedTuple):
    """From `start` to `end` (exclusive, columns or code points) in a style."""

    start: int
    end: int
    style: Style


Range = TypeVar("Range", bound=tuple[Any, ...])


def overlapping(ranges: Sequence[Range], start: int, end: int) -> Iterator[Range]:
    """Yield those of ranges, in order and apart, that hold something from `start` to `end`."""
    for at in range(bisect_right(ranges, start, key=lambda one: one[1]), len(ranges)):
        if ranges[at][0] >= end:
            return
        yield ranges[at]


class SourceRun(NamedTuple):
    """Neighbouring columns of a line that show neighbouring code points of the text.

    A run of width 0 marks where text that is not shown (syntax, folded lines) has its place.
    """

    column: int
    width: int
    offset: int
    length: int
    atomic: bool = False
    """The code points are one picture (an emoji sequence, a tab, an entity): no place inside."""

    def column_of(self, offset: int) -> int:
        """Column of `offset`, which is not before the run; behind the run: the run's end."""
        into = offset - self.offset
        if into >= self.length:
            return self.column + self.width
        if self.atomic or not self.width:
            return self.column
        return self.column + into * (self.width // self.length)

    def offset_of(self, column: int) -> int:
        """Offset shown at `column`, which is inside the run."""
        if self.atomic:
            return self.offset
        return self.offset + (column - self.column) * self.length // self.width


class RenderedLine(NamedTuple):
    """One screen line; columns without a run are decoration."""

    strip: Strip
    runs: tuple[SourceRun, ...] = ()

    @property
    def text(self) -> str:
        return self.strip.text

    @property
    def is_fold(self) -> bool:
        """Whether the line begins with the mark of folded lines, which is no part of the text.

        The sign of a failure may stand before it.
        """
        column = len(self.text) - len(self.text.lstrip(" ✗"))
        return self.text[column : column + 1] in FOLD_MARKS and not any(
            run.column <= column < run.column + run.width for run in self.runs
        )

    def shifted(self, distance: int) -> RenderedLine:
        """The same picture of a text that stands `distance` code points further on."""
        if not distance:
            return self
        return RenderedLine(
            self.strip, tuple(run._replace(offset=run.offset + distance) for run in self.runs)
        )


class LineChunk:
    """Consecutive lines of a cell whose runs count offsets from `start`."""

    __slots__ = ("_lines", "_places", "drawn_count", "line_count", "start")

    def __init__(self, start: int, lines: Sequence[RenderedLine]) -> None:
        self.start = start
        self._lines = lines
        self.line_count = self.drawn_count = len(lines)
        self._places: list[tuple[int, SourceRun]] | None = None

    def line(self, number: int) -> RenderedLine:
        return self._lines[number]

    def run_before(self, offset: int) -> tuple[int, SourceRun] | None:
        """The last run that starts at or before `offset`, with its line; offsets as in the runs."""
        if self._places is None:
            self._places = [
                (number, run) for number, line in enumerate(self._lines) for run in line.runs
            ]
            # Output that is written over does not show its text in order.
            self._places.sort(key=lambda place: place[1].offset)
        at = bisect_right(self._places, offset, key=lambda place: place[1].offset) - 1
        return self._places[at] if at >= 0 else None


class RenderedCell:
    """A block's picture. Never changes; a stream's next picture shares the sections before it."""

    __slots__ = ("_ends", "_head", "_sections", "line_count")

    def __init__(
        self, sections: Sequence[LineChunk | CellChunk], head: Sequence[RenderedLine] = ()
    ) -> None:
        """The lines of `head`, which show nothing of the text, then those of the sections."""
        self._sections = sections
        self._head = head
        self._ends = list(accumulate([one.line_count for one in sections]))
        """For each section, the number of lines up to its end, those of the head not counted."""
        self.line_count = len(head) + (self._ends[-1] if sections else 0)

    @classmethod
    def of_lines(cls, lines: Sequence[RenderedLine]) -> RenderedCell:
        """A cell of lines whose runs count from the start of the text."""
        return cls((LineChunk(0, lines),))

    def framed(
        self, head: Sequence[RenderedLine] = (), foot: Sequence[RenderedLine] = ()
    ) -> RenderedCell:
        """This cell between lines that show nothing of the text."""
        sections = self._sections
        if foot:
            sections = (*sections, LineChunk(sections[-1].start if sections else 0, foot))
        return RenderedCell(sections, (*head, *self._head))

    @property
    def lines(self) -> Sequence[RenderedLine]:
        return [self.line(at) for at in range(self.line_count)]

    def line(self, line: int) -> RenderedLine:
        """A line with its runs in offsets of the block's text."""
        if not 0 <= line < self.line_count:
            raise IndexError(f"line {line} of a cell of {self.line_count} lines")
        if line < len(self._head):
            return self._head[line]
        line -= len(self._head)
        at = self._section_of(line)
        section = self._sections[at]
        return section.line(line - self._first_line(at)).shifted(section.start)

    def place_of(self, offset: int) -> tuple[int, int]:
        """Line and column of a code point; never moves back as `offset` grows.

        Text that is not shown has the place of what is shown before it or, at the start of a
        paragraph, of what it introduces. The column may be one behind the last of the line.
        """
        if found := self.run_before(offset):
            line, run = found
            return line, run.column_of(offset)
        shown = ((at, self.line(at).runs) for at in range(self.line_count))
        return next(((at, runs[0].column) for at, runs in shown if runs), (len(self._head), 0))

    def run_before(self, offset: int) -> tuple[int, SourceRun] | None:
        """The last run that starts at or before `offset`, with its line."""
        sections = self._sections
        behind = bisect_right(sections, offset, 1, key=lambda one: one.start) if sections else 0
        for at in reversed(range(behind)):
            section = sections[at]
            if found := section.run_before(offset - section.start):
                line, run = found
                line += len(self._head) + self._first_line(at)
                return line, run._replace(offset=run.offset + section.start)
        return None

    @property
    def drawn_count(self) -> int:
        """Lines that there is a picture of; the others have guessed numbers and nothing to show."""
        return len(self._head) + sum(section.drawn_count for section in self._sections)

    def settled(self, line: int, rows: int) -> tuple[RenderedCell, int]:
        """The cell with the lines within `rows` of a line drawn, and the line's number in it.

        A line that was guessed is one about as far down in its part of the text.
        """
        if not self._sections or not isinstance(self._sections[0], CellChunk):
            return self, line
        chunks = list(self._sections)
        top = len(self._head)
        wanted = max(0, min(line, self.line_count - 1) - top)
        at = self._section_of(wanted)
        within, outside = wanted - self._first_line(at), line - top - wanted
        before = chunks[at].line_count
        is_changed = self._draw(chunks, at)
        after = chunks[at].line_count
        if is_changed and after != before:
            within = after - 1 if within == before - 1 else within * after // before
            within = max(0, within)
        above = within
        low = at
        while above < rows and low:
            low -= 1
            is_changed |= self._draw(chunks, low)
            above += chunks[low].line_count
        below = after - within
        high = at
        while below < rows and high + 1 < len(chunks):
            high += 1
            is_changed |= self._draw(chunks, high)
            below += chunks[high].line_count
        if not is_changed:
            return self, line
        _release_far(chunks, low, high)
        cell = RenderedCell(chunks, head=self._head)
        return cell, top + cell._first_line(at) + within + outside

    def settled_at(self, offset: int, rows: int) -> tuple[RenderedCell, int]:
        """The cell with the lines around a code point drawn, and the number of its line."""
        cell, _ = self.settled(self.place_of(offset)[0], 0)
        return cell.settled(cell.place_of(offset)[0], rows)

    @staticmethod
    def _draw(chunks: list[LineChunk | CellChunk], at: int) -> bool:
        """Draw a chunk if it is not drawn."""
        chunk = chunks[at]
        if not isinstance(chunk, CellChunk) or chunk.cell is not None:
            return False
        chunk.part.draw()
        chunks[at] = CellChunk.of(chunk.part)
        return True

    def offset_at(self, line: int, column: int) -> int | None:
        """Offset of the code point shown nearest; None only if the cell shows no text at all."""
        if not self.line_count:
            return None
        line = max(0, min(line, self.line_count - 1))
        for number in chain(range(line, -1, -1), range(line + 1, self.line_count)):
            if runs := self.line(number).runs:
                # The end of a line above, or the start of one below.
                other = 1 << 30 if number < line else 0
                return _nearest(runs, column if number == line else other)
        return None

    def _section_of(self, line: int) -> int:
        """The section that holds a line, counted from below the head."""
        return min(bisect_right(self._ends, line), len(self._ends) - 1)

    def _first_line(self, section: int) -> int:
        return self._ends[section - 1] if section else 0


class CellChunk(NamedTuple):
    """Lines of a part of a text as it was when the cell was made."""

    part: TextSegment
    start: int
    length: int
    line_count: int
    cell: RenderedCell | None

    @classmethod
    def of(cls, part: TextSegment) -> CellChunk:
        return cls(part, part.start.offset, part.length, part.line_count, part.cell)

    @property
    def drawn_count(self) -> int:
        """Lines that there is a picture of."""
        return self.line_count if self.cell is not None else 0

    def line(self, number: int) -> RenderedLine:
        if self.cell is not None:
            return self.cell.line(number)
        offset = number * self.length // max(self.line_count, 1)
        return RenderedLine(Strip([]), (SourceRun(0, 0, offset, 0),))

    def run_before(self, offset: int) -> tuple[int, SourceRun] | None:
        if self.cell is not None:
            return self.cell.run_before(offset)
        line = max(0, offset) * self.line_count // max(self.length, 1)
        return max(0, min(line, self.line_count - 1)), SourceRun(0, 0, max(0, offset), 0)


_MOST_DRAWN: Final = 24
"""Parts of a text that stay drawn although they are not near any more."""


def _release_far(chunks: list[LineChunk | CellChunk], low: int, high: int) -> None:
    """Let go of the pictures that are farthest from those between two places."""
    drawn = [
        at
        for at, chunk in enumerate(chunks)
        if isinstance(chunk, CellChunk) and chunk.cell is not None and not low <= at <= high
    ]
    drawn.sort(key=lambda at: low - at if at < low else at - high)
    for at in drawn[_MOST_DRAWN:]:
        chunk = chunks[at]
        if isinstance(chunk, CellChunk):
            chunk.part.release()
            chunks[at] = CellChunk.of(chunk.part)


def _nearest(runs: Sequence[SourceRun], column: int) -> int:
    """Offset nearest to `column` among the runs of one line."""
    before = None
    for run in runs:
        if run.column <= column < run.column + run.width:
            return run.offset_of(column)
        if run.column > column:
            gap_before = column - (before.column + before.width) if before else 1 << 30
            if before is None or run.column - column <= gap_before:
                return run.offset
            break
        if run.width or before is None:
            before = run
    assert before is not None
    return before.offset + (before.length if before.width else 0)


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
    """All that has to be known of the text before it; None if there is none."""


Renderer = Callable[[str], RenderedCell]
"""Draws a text again and again as it grows and is edited."""


class Cutter(Protocol):
    """Way to cut texts of one kind, and to draw what is between two cuts."""

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
            self.cell = self._renderer(self._text.content[self.start.offset : self.end])
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

    @property
    def length(self) -> int:
        return (len(self._text.content) if self.end is None else self.end) - self.start.offset

    def guess(self) -> None:
        """Guess the number of lines, if it is not known."""
        if not self._is_known:
            start, length, width = self.start.offset, self.length, self._text.cutter.text_width
            lines = self._text.content.count("\n", start, start + length)
            self.line_count = max(1, lines + max(0, length - lines * width // 2) // width)

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
        self.content = ""
        self._segments = [TextSegment(self, SegmentStart(0, 0, None))]

    def update(self, text: str) -> RenderedCell:
        """Draw a short text; of a long one, again what was drawn before and is another now."""
        old, self.content = self.content, text
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
        if len(self._segments) == 1:
            return self._segments[0].draw()
        for segment in self._segments:
            segment.guess()
        return RenderedCell(list(map(CellChunk.of, self._segments)))

    def _cut(self, followers: list[TextSegment], edit_end: int, distance: int) -> None:
        """Cut what follows the last segment; old segments behind the edit are taken over."""
        by_start = {
            (one.start.offset + distance, one.start.state): at
            for at, one in enumerate(followers)
            if one.start.offset >= edit_end
        }
        while True:
            last = self._segments[-1]
            start = self.cutter.next_start(self.content, last.start)
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
