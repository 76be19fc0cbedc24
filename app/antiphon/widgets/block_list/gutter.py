"""Gutter left of a cell's lines: author, bar and unread marks; numbers of the lines of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import chain, count
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.render.markdown import TEXT_WIDTH, WIDE_WIDTH
from antiphon.widgets.editor import CellEditor

GutterWidth = Literal["auto", "narrow", "wide"]
"""Width of the gutter as a person sets it; `auto` follows the width of the view."""

WIDE_FROM = 90
"""Columns from which on names stand in the gutter instead of on lines of their own."""

WIDE_TEXT_FROM = 104
"""Columns from which on code, tables and output are wider than text."""

_NARROW_GUTTER = 3
_WIDE_GUTTER = 9
_NAME_WIDTH = _WIDE_GUTTER - 2
_BAR = "│"
_FOCUSED_BAR = "┃"
_DRIFT_BAR = "║"
_UNREAD = "•"
_GAP = Segment(" ")


class Columns(NamedTuple):
    """Division of the width into columns."""

    width: int
    gutter: int
    text: int
    """Width of code, tables and output; what is written in sentences is up to `prose` wide."""

    @classmethod
    def of(cls, width: int, wanted: GutterWidth = "auto") -> Columns:
        """The columns of a view, its scroll bar not counted; one is left for a cursor."""
        is_wide = width >= WIDE_FROM if wanted == "auto" else wanted == "wide"
        gutter = _WIDE_GUTTER if is_wide else _NARROW_GUTTER
        widest = WIDE_WIDTH if width >= WIDE_TEXT_FROM else TEXT_WIDTH
        return cls(width, gutter, max(2, min(widest, width - gutter - 1)))

    @classmethod
    def of_file(cls, width: int, digits: int) -> Columns:
        """The columns of a file that fills the view: numbers of so many digits, marks, the text."""
        gutter = digits + 3
        return cls(width, gutter, max(2, width - gutter - 1))

    @property
    def prose(self) -> int:
        return min(self.text, TEXT_WIDTH)

    @property
    def is_wide(self) -> bool:
        return self.gutter == _WIDE_GUTTER


class LineMark(StrEnum):
    """Sign beside a line of a file that differs from the last commit, or has a finding."""

    ADDED = "+"
    CHANGED = "~"
    DELETED = "-"
    """Lines above it are gone."""
    FOUND = "!"
    """A check has found something in it."""


class RowNumber(NamedTuple):
    """Number of the line of a file that begins on a row; empty if none does."""

    text: str
    mark: LineMark | None
    is_current: bool


LEAST_DIGITS = 3
"""Digits for which there is always room."""


class LineIndex:
    """Numbers of lines by their offsets, counted from the place that was asked for last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.count = text.count("\n") + 1
        self._offset = self._number = 0

    def number(self, offset: int) -> int:
        """Return the line, from 0, that a code point is in."""
        if offset >= self._offset:
            self._number += self.text.count("\n", self._offset, offset)
        else:
            self._number -= self.text.count("\n", offset, self._offset)
        self._offset = offset
        return self._number

    def line_at(self, offset: int) -> int | None:
        """Return the line that begins at a code point; None if none does."""
        is_start = not offset or self.text[offset - 1 : offset] == "\n"
        return self.number(offset) if is_start else None


class FileGutter(NamedTuple):
    """Everything that the numbers beside a file depend on."""

    lines: LineIndex | None
    """Of the text that is shown; None while it is edited."""
    marks: Mapping[int, LineMark]
    editor: CellEditor | None
    current: int | None
    """The line of the person's cursor."""

    def beside(self, picture: RenderedCell | None, row: int) -> RowNumber:
        """Return the number beside a row; rows on which a line goes on have none."""
        line = None
        if self.editor is not None:
            shown = self.editor.row_cache
            number, section = (shown.sections[row - shown.top : row - shown.top + 1] or [(0, 1)])[0]
            line = None if section else number
        elif self.lines is not None and picture is not None:
            runs = picture.line(row).runs
            line = self.lines.line_at(runs[0].offset) if runs else None
        if line is None:
            return RowNumber("", None, False)
        return RowNumber(str(line + 1), self.marks.get(line), line == self.current)


class GutterStyle(NamedTuple):
    """Properties that a cell's gutter depends on."""

    name: str
    """Of the author; empty where the cell above has the same."""
    colour: int
    is_focused: bool
    is_inline: bool
    """The name stands before the only line of the cell, in a narrow view."""
    is_drift: bool = False
    """The cell came from another context."""


class GutterPainter:
    """Draws gutters at one width in one theme."""

    def __init__(self, columns: Columns, theme: CellTheme) -> None:
        self.columns = columns
        self.theme = theme

    def head(self, look: GutterStyle) -> Strip:
        """The line above a cell with its author's name, where the gutter has no room for it."""
        name = set_cell_size(look.name, min(cell_len(look.name), self.columns.text))
        return Strip([Segment(" "), Segment(name, self.theme.author(look.colour))])

    def running_head(self, name: str, colour: int, subject: str) -> Strip:
        """The first row of a view that begins within a cell."""
        columns, ground = self.columns, self.theme.background + self.theme.composer
        room = columns.gutter - 2 if columns.is_wide else min(cell_len(name), columns.text // 2)
        lead = "" if columns.is_wide else " "
        shown = _short(name) if columns.is_wide else name
        shown = set_cell_size(shown, room)
        strip = Strip(
            [
                Segment(lead, ground),
                Segment(shown, ground + self.theme.author(colour)),
                Segment("  ", ground),
                Segment(subject, ground + self.theme.dim),
            ]
        )
        width = columns.gutter + columns.text
        if strip.cell_length > width:
            strip = Strip.join([strip.crop(0, width - 1), Strip([Segment("…", ground)])])
        return strip.adjust_cell_length(columns.width, ground)

    def blame(self, label: str, colour: int) -> Strip:
        """Return the gutter with the author of the line's first text; their bar if both fit."""
        author = self.theme.author(colour)
        if self.columns.is_wide:
            bar = Segment(_FOCUSED_BAR, Style(color=author.color))
            return Strip([*_named(label, author, _NAME_WIDTH), bar, _GAP])
        return Strip([*_named(label, author, self.columns.gutter - 1), _GAP])

    def number(self, row: RowNumber) -> Strip:
        """Return the gutter of a row of a file: its number, and what has become of the line."""
        theme = self.theme
        style = theme.focus if row.is_current else theme.dim
        marks = {
            LineMark.ADDED: theme.status_done,
            LineMark.CHANGED: theme.unread,
            LineMark.DELETED: theme.status_failed,
            LineMark.FOUND: theme.status_failed,
        }
        mark = Segment(" ") if row.mark is None else Segment(row.mark.value, marks[row.mark])
        number = f"{row.text:>{self.columns.gutter - 2}}"
        return Strip([Segment(number, style), mark, _GAP], self.columns.gutter)

    def beside(self, look: GutterStyle, *, is_first: bool, is_unread: bool) -> Strip:
        """Return what is left of one line of a cell."""
        author = self.theme.author(look.colour)
        sign = _FOCUSED_BAR if look.is_focused else _DRIFT_BAR if look.is_drift else _BAR
        bar = Segment(sign, Style(color=author.color))
        gap = Segment(_UNREAD, self.theme.unread) if is_unread else Segment(" ")
        if look.is_inline and is_first:
            name = set_cell_size(look.name, min(cell_len(look.name), self.columns.text // 2))
            lead = bar if look.is_focused else Segment(" ")
            return Strip([lead, Segment(name, author), Segment(" "), gap])
        if not self.columns.is_wide:
            return Strip([Segment(" "), bar, gap], _NARROW_GUTTER)
        name = _short(look.name) if is_first else ""
        return Strip([*_named(name, author, _NAME_WIDTH), bar, gap], _WIDE_GUTTER)


def author_labels(names: AbstractSet[str], columns: Columns) -> dict[str, str]:
    """Return what stands for each name in the gutter; no two alike as long as numbers fit.

    It is the beginning of the name. Longer names that begin alike get the beginning with a later
    letter of the name, or with a number.
    """
    width = _NAME_WIDTH - 1 if columns.is_wide else columns.gutter - 1
    begun = {name: _short(name) if columns.is_wide else _cut(name, width) for name in names}
    alike = Counter(begun.values())
    labels = {name: own for name, own in begun.items() if own == name or alike[own] == 1}
    taken = set(begun.values())
    for name in sorted(names - labels.keys()):
        endings = chain(name[len(_cut(name, width - 1)) :], map(str, count(1)))
        others = (_cut(name, width - cell_len(one)) + one for one in endings)
        labels[name] = next(one for one in others if one not in taken)
        taken.add(labels[name])
    return labels


def _cut(name: str, width: int) -> str:
    return set_cell_size(name, min(cell_len(name), width)).strip()


def _named(name: str, style: Style, width: int) -> tuple[Segment, Segment]:
    """Return a name in so many columns: the style may underline it, not the columns behind it."""
    name = set_cell_size(name, min(cell_len(name), width))
    return Segment(name, style), Segment(" " * (width - cell_len(name)))


def _short(name: str) -> str:
    if cell_len(name) <= _NAME_WIDTH - 1:
        return name
    return set_cell_size(name, _NAME_WIDTH - 2) + "…"
