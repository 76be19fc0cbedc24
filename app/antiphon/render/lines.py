"""Rendered lines and the map between a block's text and its place on them.

Offsets count code points of the block's text; lines and columns count from 0 inside the cell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from copy import copy
from typing import Final, NamedTuple, Protocol

from rich.style import Style
from textual.strip import Strip

FOLD_MARKS: Final = ("▸", "▾")


class StyleSpan(NamedTuple):
    """From `start` to `end` (exclusive, columns or code points) in a style."""

    start: int
    end: int
    style: Style


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

    __slots__ = ("_places", "_run_offsets", "first_line", "lines", "start")

    def __init__(self, start: int, first_line: int, lines: Sequence[RenderedLine]) -> None:
        self.start = start
        self.first_line = first_line
        self.lines = lines
        self._run_offsets: list[int] | None = None
        self._places: list[tuple[int, SourceRun]] = []

    @property
    def end_line(self) -> int:
        """Number of the line below the last one."""
        return self.first_line + len(self.lines)

    @property
    def drawn_count(self) -> int:
        """Lines that there is a picture of."""
        return len(self.lines)

    def line(self, number: int) -> RenderedLine:
        return self.lines[number]

    def strip(self, number: int) -> Strip:
        return self.lines[number].strip

    def moved(self, start: int, first_line: int) -> LineChunk:
        """The same lines at another place of the text and the cell."""
        return LineChunk(start, first_line, self.lines)

    def run_before(self, offset: int) -> tuple[int, SourceRun] | None:
        """The last run that starts at or before `offset`, with its line; offsets as in the runs."""
        offsets = self._index()
        at = bisect_right(offsets, offset) - 1
        return self._places[at] if at >= 0 else None

    def first_run(self) -> tuple[int, SourceRun] | None:
        """The first run of all, with its line."""
        return self._places[0] if self._index() else None

    def _index(self) -> list[int]:
        if self._run_offsets is None:
            self._places = [
                (number, run) for number, line in enumerate(self.lines) for run in line.runs
            ]
            # Output that is written over does not show its text in order.
            self._places.sort(key=lambda place: place[1].offset)
            self._run_offsets = [run.offset for _, run in self._places]
        return self._run_offsets


class RenderedCell:
    """A block's picture. Never changes; a stream's next picture shares the sections before it."""

    __slots__ = ("_frozen", "_frozen_count", "_head", "_live", "line_count")

    def __init__(
        self,
        live: Sequence[LineChunk | CellChunk],
        frozen: list[LineChunk] | None = None,
        frozen_count: int = 0,
        head: Sequence[RenderedLine] = (),
    ) -> None:
        """The lines of `head`, which show nothing of the text, then `frozen`, then `live`.

        `frozen` may grow at its end later: only its first `frozen_count` belong to this.
        """
        self._live = live
        self._frozen = frozen if frozen is not None else []
        self._frozen_count = frozen_count
        self._head = head
        sections = self._section_count
        below = self._section(sections - 1).end_line if sections else 0
        self.line_count = len(head) + below

    @classmethod
    def of_lines(cls, lines: Sequence[RenderedLine]) -> RenderedCell:
        """A cell of lines whose runs count from the start of the text."""
        return cls((LineChunk(0, 0, lines),))

    def framed(
        self, head: Sequence[RenderedLine] = (), foot: Sequence[RenderedLine] = ()
    ) -> RenderedCell:
        """This cell between lines that show nothing of the text."""
        live = self._live
        if foot:
            count = self._section_count
            last = self._section(count - 1) if count else None
            start, line = (last.start, last.end_line) if last else (0, 0)
            live = (*live, LineChunk(start, line, foot))
        return RenderedCell(live, self._frozen, self._frozen_count, (*head, *self._head))

    @property
    def lines(self) -> Sequence[RenderedLine]:
        """All lines; `strip` is cheaper when only the picture is wanted."""
        return [self.line(at) for at in range(self.line_count)]

    def strip(self, line: int) -> Strip:
        """The picture of a line, not padded."""
        if 0 <= line < len(self._head):
            return self._head[line].strip
        section, within = self._find_line(line)
        return section.strip(within)

    def line(self, line: int) -> RenderedLine:
        """A line with its runs in offsets of the block's text."""
        if 0 <= line < len(self._head):
            return self._head[line]
        section, within = self._find_line(line)
        return section.line(within).shifted(section.start)

    def place_of(self, offset: int) -> tuple[int, int]:
        """Line and column of a code point; never moves back as `offset` grows.

        Text that is not shown has the place of what is shown before it or, at the start of a
        paragraph, of what it introduces. The column may be one behind the last of the line.
        """
        found = self.run_before(offset)
        if found is not None:
            line, run = found
            return line, run.column_of(offset)
        first = self.first_run()
        return (first[0], first[1].column) if first is not None else (len(self._head), 0)

    def run_before(self, offset: int) -> tuple[int, SourceRun] | None:
        """The last run that starts at or before `offset`, with its line."""
        sections = range(self._section_count)
        behind = bisect_right(sections, offset, 1, key=lambda at: self._section(at).start)
        for at in reversed(sections[:behind]):
            section = self._section(at)
            if found := section.run_before(offset - section.start):
                return self._placed(section, found)
        return None

    def first_run(self) -> tuple[int, SourceRun] | None:
        for at in range(self._section_count):
            section = self._section(at)
            if found := section.first_run():
                return self._placed(section, found)
        return None

    def _placed(
        self, section: LineChunk | CellChunk, found: tuple[int, SourceRun]
    ) -> tuple[int, SourceRun]:
        line, run = found
        line += len(self._head) + section.first_line
        return line, run._replace(offset=run.offset + section.start)

    @property
    def drawn_count(self) -> int:
        """Lines that there is a picture of; the others have guessed numbers and nothing to show."""
        sections = (self._section(at) for at in range(self._section_count))
        return len(self._head) + sum(section.drawn_count for section in sections)

    def settled(self, line: int, rows: int) -> tuple[RenderedCell, int]:
        """The cell with the lines within `rows` of a line drawn, and the line's number in it.

        A line that was guessed is one about as far down in its part of the text.
        """
        if not any(isinstance(section, CellChunk) for section in self._live):
            return self, line
        chunks = list(self._live)
        top = len(self._head)
        wanted = max(0, min(line, self.line_count - 1) - top)
        at = self._index_of_line(wanted)
        within, outside = wanted - chunks[at].first_line, line - top - wanted
        before = chunks[at].end_line - chunks[at].first_line
        is_changed = self._draw(chunks, at)
        after = chunks[at].end_line - chunks[at].first_line
        if is_changed and after != before:
            within = after - 1 if within == before - 1 else within * after // before
            within = max(0, within)
        above = within
        low = at
        while above < rows and low:
            low -= 1
            is_changed |= self._draw(chunks, low)
            above += chunks[low].end_line - chunks[low].first_line
        below = after - within
        high = at
        while below < rows and high + 1 < len(chunks):
            high += 1
            is_changed |= self._draw(chunks, high)
            below += chunks[high].end_line - chunks[high].first_line
        if not is_changed:
            return self, line
        _release_far(chunks, low, high)
        number = 0
        for index, chunk in enumerate(chunks):
            chunks[index] = chunk.moved(chunk.start, number)
            number = chunks[index].end_line
        cell = RenderedCell(chunks, head=self._head)
        return cell, top + chunks[at].first_line + within + outside

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
        chunks[at] = chunk.drawn()
        return True

    def offset_at(self, line: int, column: int) -> int | None:
        """Offset of the code point shown nearest; None only if the cell shows no text at all."""
        if not self.line_count:
            return None
        line = max(0, min(line, self.line_count - 1))
        for number in range(line, -1, -1):
            runs = self.line(number).runs
            if runs:
                return _nearest(runs, column if number == line else 1 << 30)
        for number in range(line + 1, self.line_count):
            runs = self.line(number).runs
            if runs:
                return _nearest(runs, 0)
        return None

    @property
    def _section_count(self) -> int:
        return self._frozen_count + len(self._live)

    def _section(self, index: int) -> LineChunk | CellChunk:
        if index < self._frozen_count:
            return self._frozen[index]
        return self._live[index - self._frozen_count]

    def _find_line(self, line: int) -> tuple[LineChunk | CellChunk, int]:
        """The section that holds a line below the head, and which of its lines it is."""
        if not len(self._head) <= line < self.line_count:
            raise IndexError(f"line {line} of a cell of {self.line_count} lines")
        line -= len(self._head)
        section = self._section(self._index_of_line(line))
        return section, line - section.first_line

    def _index_of_line(self, line: int) -> int:
        sections = range(self._section_count)
        return bisect_right(sections, line, 1, key=lambda at: self._section(at).first_line) - 1


class TextPart(Protocol):
    """A part of a text that has a picture if it is looked at."""

    @property
    def cell(self) -> RenderedCell | None: ...

    @property
    def line_count(self) -> int:
        """Return the number of lines, which is guessed while there is no cell."""

    def draw(self) -> RenderedCell: ...

    def release(self) -> None: ...


class CellChunk:
    """Lines of a part of a text as it was when the cell was made."""

    def __init__(self, part: TextPart, start: int, first_line: int, length: int) -> None:
        """`length` is that of the text."""
        self.start = start
        self.first_line = first_line
        self.cell = part.cell
        self._part = part
        self._line_count = part.line_count
        self._length = length

    def drawn(self) -> CellChunk:
        """Return the same part with its cell."""
        self._part.draw()
        return CellChunk(self._part, self.start, self.first_line, self._length)

    def released(self) -> CellChunk:
        """Return the same part without its cell."""
        self._part.release()
        return CellChunk(self._part, self.start, self.first_line, self._length)

    def moved(self, start: int, first_line: int) -> CellChunk:
        moved = copy(self)
        moved.start, moved.first_line = start, first_line
        return moved

    @property
    def end_line(self) -> int:
        return self.first_line + self._line_count

    @property
    def drawn_count(self) -> int:
        return self._line_count if self.cell is not None else 0

    def line(self, number: int) -> RenderedLine:
        if self.cell is not None:
            return self.cell.line(number)
        offset = number * self._length // max(self._line_count, 1)
        return RenderedLine(Strip([]), (SourceRun(0, 0, offset, 0),))

    def strip(self, number: int) -> Strip:
        return Strip([]) if self.cell is None else self.cell.strip(number)

    def run_before(self, offset: int) -> tuple[int, SourceRun] | None:
        if self.cell is not None:
            return self.cell.run_before(offset)
        line = max(0, offset) * self._line_count // max(self._length, 1)
        return max(0, min(line, self._line_count - 1)), SourceRun(0, 0, max(0, offset), 0)

    def first_run(self) -> tuple[int, SourceRun] | None:
        return self.cell.first_run() if self.cell is not None else self.run_before(0)


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
            chunks[at] = chunk.released()


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
