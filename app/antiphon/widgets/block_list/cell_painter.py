"""The screen rows of one cell: gutter, text, and what is marked in it, found line by line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.lines import RenderedCell, RenderedLine, StyleSpan, overlapping
from antiphon.widgets.block_list.gutter import FileGutter, GutterPainter, GutterStyle, RowNumber
from antiphon.widgets.block_list.text_finder import Hit
from antiphon.widgets.block_list.viewport import HEADER_LINE
from antiphon.widgets.editor import (
    CursorLabel,
    InkRange,
    RemoteCursor,
    ink_style,
    labelled,
    styled,
    written_over,
)


class AuthorRange(NamedTuple):
    """Text from `start` to `end` (exclusive, code points) that belongs to an author."""

    start: int
    end: int
    colour: int
    label: str = ""
    """Stands for the author in the gutter, where it changes."""


class Highlights:
    """Ranges that do not overlap, in order. A line costs what is in it, not what is in the cell."""

    def __init__(self, ranges: Iterable[StyleSpan]) -> None:
        self.ranges = [one for one in ranges if one.start < one.end]

    def marks(self, line: RenderedLine) -> list[StyleSpan]:
        """Return the marked spans of a line, by its columns."""
        marks: list[StyleSpan] = []
        for run in line.runs:
            if not run.width:
                continue
            end = run.offset + run.length
            for one in overlapping(self.ranges, run.offset, end):
                left = run.column_of(max(one.start, run.offset))
                right = run.column + run.width
                if one.end < end and not run.atomic:
                    right = run.column_of(one.end)
                marks.append(StyleSpan(left, right, one.style))
        return marks


def author_at(tints: Sequence[AuthorRange], line: RenderedLine) -> AuthorRange | None:
    """Return the author range that a line's text begins with."""
    first = next((run.offset for run in line.runs if run.width), None)
    return None if first is None else next(overlapping(tints, first, first + 1), None)


_LOOK_BACK: Final = 4
"""Blank lines that a name in the gutter reaches over in the blame view."""


class CellStyle(NamedTuple):
    """Everything that the rows of a cell depend on; equal looks have equal rows."""

    picture: RenderedCell | None
    """None while the cell is being edited: the editor lies over it."""
    author: GutterStyle
    gutters: GutterPainter
    unread_line: int | None
    cursors: tuple[RemoteCursor, ...]
    tints: tuple[AuthorRange, ...]
    ground: Style
    is_panel: bool
    """The background is that of the text only."""
    names_above: bool
    """The author's name has a row of its own above the text."""
    hits: tuple[Hit, ...] = ()
    hit: Hit | None = None
    """The hit that the person has gone to."""
    note: str = ""
    """At the right of the last line."""
    ink: tuple[InkRange, ...] = ()
    end: tuple[int, str] | None = None
    """Line below the editor that lies over the cell, and what it says."""
    numbers: FileGutter | None = None
    """Numbers of the lines, in the place of the usual gutter."""

    @property
    def note_line(self) -> int | None:
        """Return the line with the note; None if there is none."""
        return self.picture.line_count - 1 if self.note and self.picture else None


class _PaintedRow(NamedTuple):
    """A row, and what it was made from."""

    content: Strip | None
    number: RowNumber | None
    strip: Strip


class CellPainter:
    """Rows of a cell with one look, made when asked for."""

    def __init__(self, look: CellStyle, before: CellPainter | None = None) -> None:
        """`before` lends the rows that did not change."""
        self.look = look
        self._rows: dict[int, _PaintedRow] = {}
        self._layers = [layer for layer in _layers(look) if layer.ranges]
        self._labels: dict[int, list[CursorLabel]] = {}
        self.flags: dict[int, tuple[CursorLabel, ...]] = {}
        """Names of cursors in lines, drawn before, that have no room for them."""
        self._ink = Highlights(
            StyleSpan(one.start, one.end, ink_style(one, look.gutters.theme)) for one in look.ink
        )
        self._inked: set[int] = set()
        """Lines with new text."""
        self._marks_of_ink: dict[int, tuple[StyleSpan, ...]] = {}
        if (picture := look.picture) is not None:
            for cursor in look.cursors:
                line, column = picture.place_of(cursor.offset)
                label = CursorLabel.of(cursor, column, look.gutters.theme)
                self._labels.setdefault(line, []).append(label)
            for one in look.ink:
                first, last = picture.place_of(one.start)[0], picture.place_of(one.end)[0]
                self._inked.update(range(first, last + 1))
        self.lender = before if before is not None and self._may_share(before.look) else None
        if before is not None:
            before.lender = None  # from now on it draws what is missing: rows of older looks can go

    def strip(self, line: int) -> Strip:
        """The row of a line; those above the first are below 0."""
        picture, numbers = self.look.picture, self.look.numbers
        content = None if picture is None or line < 0 else picture.strip(line)
        number = None if numbers is None else numbers.beside(picture, line)
        known = self._rows.get(line)
        if known is None and self.lender is not None and line not in self._labels:
            known = self.lender.row_without_cursors(line, self._ink_marks(line))
        if known is None or known.content != content or known.number != number:
            known = _PaintedRow(content, number, self._draw(line, content, number))
        self._rows[line] = known
        return known.strip

    def row_without_cursors(self, line: int, ink: tuple[StyleSpan, ...]) -> _PaintedRow | None:
        """The text of a line and its row, if it was drawn with this new text and no cursor."""
        if line in self._labels or self._ink_marks(line) != ink:
            return None
        return self._rows.get(line)

    def _ink_marks(self, line: int) -> tuple[StyleSpan, ...]:
        if line not in self._inked or self.look.picture is None:
            return ()
        marks = self._marks_of_ink.get(line)
        if marks is None:
            marks = tuple(self._ink.marks(self.look.picture.line(line)))
            self._marks_of_ink[line] = marks
        return marks

    def _may_share(self, other: CellStyle) -> bool:
        mine = self.look
        return (
            not self._layers
            and not other.tints
            and not other.hits
            and not any(cursor.anchor is not None for cursor in other.cursors)
            and mine.note == other.note
            and mine.note_line == other.note_line
            and mine.end == other.end
            and mine.ground == other.ground
            and mine.author == other.author
            and mine.gutters is other.gutters
            and mine.unread_line == other.unread_line
        )

    def _draw(self, line: int, content: Strip | None, number: RowNumber | None) -> Strip:
        look = self.look
        columns, theme = look.gutters.columns, look.gutters.theme
        ground = theme.background
        if line >= (HEADER_LINE if look.names_above else 0) and not look.is_panel:
            ground += look.ground
        if line < 0:
            is_name = look.names_above and line == HEADER_LINE
            strip = look.gutters.head(look.author) if is_name else Strip([])
        else:
            strip = self._gutter(line, number)
            if content is not None:
                content = styled(content, self._marks(line))
                if labels := self._labels.get(line):
                    room = columns.width - strip.cell_length
                    content, self.flags[line] = labelled(content, labels, room)
                if look.is_panel:
                    content = content.extend_cell_length(columns.text).apply_style(look.ground)
                strip = Strip.join([strip, content])
                if line == look.note_line:
                    start = columns.gutter + columns.text - cell_len(look.note)
                    strip = written_over(strip, start, look.note, theme.dim)
            elif look.end is not None and line == look.end[0]:
                strip = Strip.join([strip, Strip([Segment(look.end[1], theme.dim)])])
        return strip.adjust_cell_length(columns.width).apply_style(ground)

    def _gutter(self, line: int, number: RowNumber | None) -> Strip:
        look = self.look
        if look.tints and look.picture is not None:
            tint = author_at(look.tints, look.picture.line(line))
            # Blank lines are passed over.
            lines = map(look.picture.line, range(line - 1, max(line - _LOOK_BACK, 0) - 1, -1))
            above = next(filter(None, (author_at(look.tints, one) for one in lines)), None)
            if tint is not None and (above is None or tint.label != above.label):
                return look.gutters.blame(tint.label, tint.colour)
        if number is not None:
            return look.gutters.number(number)
        return look.gutters.beside(
            look.author, is_first=line == 0, is_unread=line == look.unread_line
        )

    def _marks(self, line: int) -> list[StyleSpan]:
        if self.look.picture is None:
            return []
        marks = list(self._ink_marks(line))
        if self._layers:
            rendered = self.look.picture.line(line)
            marks += [mark for layer in self._layers for mark in layer.marks(rendered)]
        return marks


def _layers(look: CellStyle) -> list[Highlights]:
    """Return the highlights of the text, from below to above."""
    theme = look.gutters.theme
    blame, selections = theme.blame, theme.selections
    layers = [
        Highlights(
            StyleSpan(tint.start, tint.end, blame[tint.colour % len(blame)]) for tint in look.tints
        ),
        Highlights(StyleSpan(*span, theme.hit) for span in look.hits),
    ]
    if look.hit is not None:
        layers.append(Highlights([StyleSpan(*look.hit, theme.hit_current)]))
    for cursor in look.cursors:
        if cursor.anchor is not None:
            low, high = sorted((cursor.anchor, cursor.offset))
            style = selections[cursor.colour % len(selections)]
            layers.append(Highlights([StyleSpan(low, high, style)]))
    return layers
