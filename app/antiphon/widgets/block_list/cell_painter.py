"""The screen rows of one cell: gutter, text, and what is marked in it, found line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.lines import RenderedCell, RenderedLine, StyleSpan, overlapping
from antiphon.widgets.block_list.gutter import (
    Columns,
    FileGutter,
    GutterPainter,
    GutterStyle,
    RowNumber,
)
from antiphon.widgets.block_list.text_finder import Hit
from antiphon.widgets.block_list.viewport import HEADER_LINE
from antiphon.widgets.editor import (
    CursorLabel,
    InkRange,
    LabelledLine,
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


_REMEMBERED: Final = 512
"""Rows that are kept when the look of their cell changes."""

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


class CellPainter:
    """Rows of a cell with one look, made when asked for."""

    def __init__(self, look: CellStyle) -> None:
        self.look = look
        self._rows: dict[tuple[int, RowNumber | None], Strip] = {}
        self._layers = [layer for layer in _layers(look) if layer.ranges]
        self._labels: dict[int, tuple[CursorLabel, ...]] = {}
        self.flags: dict[int, tuple[CursorLabel, ...]] = {}
        """Names of cursors in lines, drawn before, that have no room for them."""
        if (picture := look.picture) is not None:
            for cursor in look.cursors:
                line, column = picture.place_of(cursor.offset)
                label = CursorLabel.of(cursor, column, look.gutters.theme)
                self._labels[line] = (*self._labels.get(line, ()), label)

    def strip(self, line: int) -> Strip:
        """The row of a line; those above the first are below 0."""
        picture, numbers = self.look.picture, self.look.numbers
        number = None if numbers is None else numbers.beside(picture, line)
        if (strip := self._rows.get((line, number))) is None:
            strip = self._rows[line, number] = self._draw(line, number)
        return strip

    def _draw(self, line: int, number: RowNumber | None) -> Strip:
        look, picture = self.look, self.look.picture
        theme, panel = look.gutters.theme, look.ground if look.is_panel else None
        ground = theme.background
        if line >= (HEADER_LINE if look.names_above else 0) and panel is None:
            ground += look.ground
        if line < 0:
            is_name = look.names_above and line == HEADER_LINE
            strip = look.gutters.head(look.author) if is_name else Strip([])
            return strip.adjust_cell_length(look.gutters.columns.width).apply_style(ground)
        end = look.end[1] if look.end is not None and line == look.end[0] else ""
        is_last = picture is not None and line == picture.line_count - 1
        row, self.flags[line] = _painted(
            tuple(self._gutter(line, number)),
            tuple(picture.line(line).strip if picture is not None else [Segment(end, theme.dim)]),
            tuple(self._marks(line)),
            self._labels.get(line, ()),
            look.gutters.columns,
            panel,
            Segment(look.note if is_last else "", theme.dim),
            ground,
        )
        return row

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

    def _marks(self, line: int) -> Iterator[StyleSpan]:
        if self.look.picture is not None and self._layers:
            rendered = self.look.picture.line(line)
            for layer in self._layers:
                yield from layer.marks(rendered)


@lru_cache(_REMEMBERED)
def _painted(
    gutter: tuple[Segment, ...],
    content: tuple[Segment, ...],
    marks: tuple[StyleSpan, ...],
    labels: tuple[CursorLabel, ...],
    columns: Columns,
    panel: Style | None,
    note: Segment,
    ground: Style,
) -> LabelledLine:
    """Draw a row; in the picture that comes next most rows are made of the same."""
    beside = Strip(gutter)
    room = columns.width - beside.cell_length
    strip, flags = labelled(styled(Strip(content), marks), labels, room)
    if panel is not None:
        strip = strip.extend_cell_length(columns.text).apply_style(panel)
    strip = Strip.join([beside, strip])
    if note.text and note.style is not None:
        start = columns.gutter + columns.text - cell_len(note.text)
        strip = written_over(strip, start, note.text, note.style)
    return LabelledLine(strip.adjust_cell_length(columns.width).apply_style(ground), flags)


def _layers(look: CellStyle) -> list[Highlights]:
    """Return the highlights of the text, from below to above."""
    theme = look.gutters.theme
    blame, selections = theme.blame, theme.selections
    layers = [
        Highlights(StyleSpan(one.start, one.end, ink_style(one, theme)) for one in look.ink),
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
