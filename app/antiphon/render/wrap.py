"""Pieces of styled text, cut into screen lines by cell width, and a canvas that collects these.

Words come first; a word longer than the line is cut hard. A character that takes two cells and
everything that belongs to one picture (emoji sequences, flags, combining marks) stay on one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Final, NamedTuple

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.lines import RenderedLine, SourceRun

DECORATION: Final = -1
"""Offset of a piece that shows nothing of the text."""

_ONE_CELL_EACH = re.compile(
    r"[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u205e\u2190-\u21ff"
    r"\u2400-\u2424\u2500-\u25fc]*"
)
_NOT_FIRST: Final = frozenset("、。，．：；！？）］｝」』】〉》’”…ー々")
_NOT_LAST: Final = frozenset("（［｛「『【〈《‘“")
_MINIMUM_WIDTH: Final = 2
_JOINER: Final = "\u200d"
_FLAG_HALVES: Final = frozenset(map(chr, range(0x1F1E6, 0x1F200)))
_NON_JOINER: Final = "\u200c"


class WrapPiece(NamedTuple):
    """Text in one style and what it shows of the block's text.

    Code point by code point if `length` is that of `text`; otherwise as a whole. A piece without
    text marks the place of `length` code points that are not shown.
    """

    text: str
    style: Style
    offset: int = DECORATION
    length: int = 0

    @classmethod
    def shown(cls, text: str, style: Style, offset: int) -> WrapPiece:
        """Text that is shown as it is."""
        return cls(text, style, offset, len(text))

    def cut(self, start: int, end: int) -> WrapPiece:
        """The part of the piece from `start` to `end`, counted in its own text."""
        if start == 0 and end == len(self.text):
            return self
        text = self.text[start:end]
        if self.offset == DECORATION:
            return WrapPiece(text, self.style)
        if self.length == len(self.text):
            return WrapPiece(text, self.style, self.offset + start, end - start)
        if start == 0:
            return WrapPiece(text, self.style, self.offset, self.length)
        return WrapPiece(text, self.style)


class Grapheme(NamedTuple):
    """One picture of one or more code points: `start` to `end` (exclusive), in `width` cells."""

    start: int
    end: int
    width: int


def closed(piece: WrapPiece) -> WrapPiece:
    """The piece without joiners at its edges: a picture never goes on in the next piece."""
    text = piece.text
    if text and (text[0] == _JOINER or text[-1] == _JOINER):
        inner = text.strip(_JOINER)
        lead = len(text) - len(text.lstrip(_JOINER)) if inner else len(text)
        text = _NON_JOINER * lead + inner
        return piece._replace(text=text + _NON_JOINER * (len(piece.text) - len(text)))
    return piece


def is_one_cell_each(text: str) -> bool:
    """Every code point takes one cell and stands for itself; True is certain, False is not."""
    if text.isascii():
        return text.isprintable()
    return _ONE_CELL_EACH.fullmatch(text) is not None


def graphemes(text: str) -> list[Grapheme]:
    """The pictures of a text in order; marks that follow nothing join the picture after them."""
    joined: list[Grapheme] = []
    for start, end, width in split_graphemes(text)[0]:
        is_half = joined and joined[-1].end - joined[-1].start == 1 and text[start] in _FLAG_HALVES
        if joined and (joined[-1].width == 0 or (is_half and text[start - 1] in _FLAG_HALVES)):
            before = joined.pop()
            joined.append(Grapheme(before.start, end, before.width + width))
        else:
            joined.append(Grapheme(start, end, width))
    return joined


def expand_tabs(text: str, style: Style, offset: int, tab: int, column: int = 0) -> list[WrapPiece]:
    """One line of text as pieces in which each tab is the spaces up to its next stop.

    `column` is where the text starts on its line.
    """
    if "\t" not in text:
        return [WrapPiece.shown(text, style, offset)]
    pieces: list[WrapPiece] = []
    at = 0
    for part in text.split("\t"):
        if at:
            spaces = tab - column % tab
            pieces.append(WrapPiece(" " * spaces, style, offset + at - 1, 1))
            column += spaces
        if part:
            pieces.append(WrapPiece.shown(part, style, offset + at))
            column += cell_len(part)
        at += len(part) + 1
    return pieces


def wrap(
    pieces: Sequence[WrapPiece], width: int, *, first_width: int | None = None, words: bool = True
) -> list[list[WrapPiece]]:
    """The pieces on as many lines as they need, at least one.

    White space at which a line was broken is left out; it is kept when `words` is False, which
    cuts at the width alone. `first_width` is that of the first line.
    """
    pieces = [closed(piece) for piece in pieces]
    text = "".join(piece.text for piece in pieces)
    ranges = line_ranges(text, width, first_width=first_width, words=words)
    if len(ranges) == 1 and ranges[0] == (0, len(text)):
        return [list(pieces)]
    return list(_slices(pieces, ranges))


def line_ranges(
    text: str, width: int, *, first_width: int | None = None, words: bool = True
) -> list[tuple[int, int]]:
    """Start and end (exclusive) of each line of a text without newlines."""
    width = max(width, _MINIMUM_WIDTH)
    first = width if first_width is None else max(first_width, _MINIMUM_WIDTH)
    if is_one_cell_each(text):
        return _simple_ranges(text, width, first, words)
    return _grapheme_ranges(text, width, first, words)


def _simple_ranges(text: str, width: int, first: int, words: bool) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    start, available, length = 0, first, len(text)
    while length - start > available:
        end = following = start + available
        space = text.rfind(" ", start, end + 1) if words else -1
        if space > start and (trimmed := len(text[start:space].rstrip(" "))):
            end = start + trimmed
            following = space
            while following < length and text[following] == " ":
                following += 1
        ranges.append((start, end))
        start, available = following, width
    if start < length or not ranges:
        ranges.append((start, length))
    return ranges


def _grapheme_ranges(text: str, width: int, first: int, words: bool) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    units = graphemes(text)
    available, at = first, 0
    while at < len(units):
        start = units[at].start
        end, at = _fill_line(text, units, at, available, words)
        ranges.append((start, end))
        available = width
    return ranges or [(0, 0)]


def _fill_line(
    text: str, units: Sequence[Grapheme], first: int, available: int, words: bool
) -> tuple[int, int]:
    """Return the end of the line that starts with unit `first`, and the first unit of the next."""
    column = 0
    has_ink = False
    end = following = first
    for at in range(first, len(units)):
        unit = units[at]
        is_space = words and _is_space(text, unit)
        if is_space and has_ink:
            end = end if following == at else at
            following = at + 1
        elif has_ink and words and following != at and _may_break_before(text, units, at):
            end = following = at
        if column + unit.width > available and at > first:
            if end == first:
                return unit.start, at
            while following < len(units) and _is_space(text, units[following]):
                following += 1
            return units[end].start, following
        has_ink = has_ink or not is_space
        column += unit.width
    return len(text), len(units)


def _is_space(text: str, unit: Grapheme) -> bool:
    return text[unit.start : unit.end] == " "


def _may_break_before(text: str, units: Sequence[Grapheme], at: int) -> bool:
    """Between two pictures of which one is wide a line may end, but for brackets and stops."""
    unit, before = units[at], units[at - 1]
    if unit.width < 2 and before.width < 2:
        return False
    first, last = text[unit.start], text[before.start]
    return last != " " and first not in _NOT_FIRST and last not in _NOT_LAST


def _slices(
    pieces: Sequence[WrapPiece], ranges: Sequence[tuple[int, int]]
) -> Iterator[list[WrapPiece]]:
    index = at = 0
    for number, (start, end) in enumerate(ranges):
        line: list[WrapPiece] = []
        last = number == len(ranges) - 1
        while index < len(pieces):
            piece = pieces[index]
            size = len(piece.text)
            if not size:
                if at >= end and not last:
                    break
                line.append(piece)
            else:
                low, high = max(start - at, 0), min(end - at, size)
                if low < high:
                    line.append(piece.cut(low, high))
                if at + size > end and not last:
                    break
            at += size
            index += 1
        yield line


def compose(pieces: Iterable[WrapPiece]) -> RenderedLine:
    """The pieces side by side as one line."""
    segments: list[Segment] = []
    runs: list[SourceRun] = []
    column = 0
    for piece in pieces:
        text, style, offset, length = piece
        simple = is_one_cell_each(text)
        width = len(text) if simple else cell_len(text)
        if offset != DECORATION:
            if not text or length != len(text):
                runs.append(SourceRun(column, width, offset, length, True))
            elif simple:
                _add_run(runs, SourceRun(column, width, offset, length))
            else:
                at = column
                for start, end, cells in graphemes(text):
                    size = end - start
                    _add_run(runs, SourceRun(at, cells, offset + start, size, size > 1))
                    at += cells
        if text:
            if segments and segments[-1].style == style:
                segments[-1] = Segment(segments[-1].text + text, style)
            else:
                segments.append(Segment(text, style))
        column += width
    return RenderedLine(Strip(segments, column), tuple(runs))


def _add_run(runs: list[SourceRun], run: SourceRun) -> None:
    """Append a run, joined to the last one if both count alike."""
    if runs:
        last = runs[-1]
        if (
            not last.atomic
            and not run.atomic
            and last.column + last.width == run.column
            and last.offset + last.length == run.offset
            and last.width * run.length == run.width * last.length
        ):
            runs[-1] = SourceRun(
                last.column, last.width + run.width, last.offset, last.length + run.length
            )
            return
    runs.append(run)


def clipped(pieces: Sequence[WrapPiece], width: int, ellipsis: Style) -> list[WrapPiece]:
    """The pieces on one line; what does not fit is replaced by an ellipsis."""
    text = "".join(piece.text for piece in pieces)
    if (len(text) if is_one_cell_each(text) else cell_len(text)) <= width:
        return list(pieces)
    room = max(width - 1, 0)
    end = room
    if not is_one_cell_each(text):
        end = column = 0
        for unit in graphemes(text):
            if column + unit.width > room:
                break
            column += unit.width
            end = unit.end
    kept = next(_slices(pieces, [(0, end), (end, len(text))]))
    return [*kept, WrapPiece("…", ellipsis)]


_NARROWEST: Final = 8
"""Columns that are left for text, however deep it is nested: further prefixes are left out."""


class Canvas:
    """Collects lines of at most `width` columns; code and tables may be up to `wide`."""

    def __init__(self, width: int, wide: int | None = None) -> None:
        self.lines: list[RenderedLine] = []
        self._wide = width if wide is None else wide
        self.room = width
        """Columns left for a row's own text."""
        self.wide_room = self._wide
        """Columns left for a row of code or of a table."""
        self._prefixes: list[Iterator[Sequence[WrapPiece]]] = []
        """Each yields the pieces before the next row."""

    @contextmanager
    def behind(
        self, first: Sequence[WrapPiece], rest: Sequence[WrapPiece], width: int
    ) -> Iterator[None]:
        """Rows drawn inside stand behind `first` (the first of them) or `rest`."""
        if self.room - width < _NARROWEST:
            first, rest, width = (), (), 0
        self._prefixes.append(chain((first,), repeat(rest)))
        self.room, self.wide_room = self.room - width, self.wide_room - width
        drawn = len(self.lines)
        yield
        if len(self.lines) == drawn:
            self.row([])
        self._prefixes.pop()
        self.room, self.wide_room = self.room + width, self.wide_room + width

    def row(self, pieces: Sequence[WrapPiece], fill: Style | None = None) -> None:
        """One row that fits; `fill` colours it up to the right edge."""
        before = [piece for prefix in self._prefixes for piece in next(prefix)]
        row = [*before, *pieces]
        if fill is not None:
            missing = self._wide - sum(cell_len(piece.text) for piece in row)
            row.append(WrapPiece(" " * missing, fill))
        self.lines.append(compose(row))

    def text(self, pieces: Sequence[WrapPiece]) -> None:
        """Rows of wrapped text."""
        for row in wrap(pieces, self.room):
            self.row(row)
