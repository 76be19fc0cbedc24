"""The editor's lines cut into screen rows, with the place of every code point on them.

Offsets, rows and columns count from 0. A row shows a section of a line; the text area's own class
for this keeps one entry a row and walks all of them for a newline; this one keeps sums.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import NamedTuple

from textual.document._document import Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._wrapped_document import WrappedDocument
from textual.geometry import Offset

from antiphon.editor.cell_document import CellDocument
from antiphon.editor.prefix_sums import PrefixSums
from antiphon.render.display import displayable
from antiphon.render.wrap import graphemes, is_one_cell_each, line_ranges

_UNWRAPPED: list[int] = []


class LineCells(NamedTuple):
    """A line as it is drawn. `lefts` and `starts` are None if every code point takes one cell."""

    shown: str
    """Tabs expanded, dangerous characters replaced."""
    lefts: tuple[int, ...] | None
    """Column of each code point of the line, and of its end; equal inside one picture."""
    starts: tuple[int, ...] | None
    """Index in `shown` of each code point of the line, and of its end."""

    def left(self, column: int) -> int:
        """Screen column of a code point in the unwrapped line."""
        return column if self.lefts is None else self.lefts[column]

    def start(self, column: int) -> int:
        return column if self.starts is None else self.starts[column]

    def at(self, left: int) -> int:
        """The code point drawn at a screen column of the unwrapped line."""
        if self.lefts is None:
            return min(max(left, 0), len(self.shown))
        found = bisect_right(self.lefts, max(left, 0)) - 1
        return bisect_left(self.lefts, self.lefts[found])


@lru_cache(256)
def line_cells(line: str, tab: int) -> LineCells:
    """How a line without its end is drawn."""
    shown = displayable(line)
    if "\t" not in shown:
        if is_one_cell_each(shown):
            return LineCells(shown, None, None)
        return LineCells(shown, tuple(_lefts(shown)), None)
    lefts: list[int] = []
    starts: list[int] = []
    parts: list[str] = []
    column = index = 0
    for number, part in enumerate(shown.split("\t")):
        if number:
            lefts.append(column)
            starts.append(index)
            spaces = tab - column % tab
            parts.append(" " * spaces)
            column += spaces
            index += spaces
        inside = range(len(part) + 1) if is_one_cell_each(part) else _lefts(part)
        lefts += [column + left for left in inside[:-1]]
        starts += range(index, index + len(part))
        column += inside[-1]
        index += len(part)
        parts.append(part)
    return LineCells("".join(parts), (*lefts, column), (*starts, index))


def _lefts(shown: str) -> list[int]:
    lefts: list[int] = []
    column = 0
    for start, end, width in graphemes(shown):
        lefts += [column] * (end - start)
        column += width
    lefts.append(column)
    return lefts


def wrap_columns(line: str, width: int, tab: int) -> list[int]:
    """Columns of a line at which a new row begins."""
    if not width or (len(line) <= width and is_one_cell_each(line)):
        return _UNWRAPPED
    cells = line_cells(line, tab)
    breaks = [start for start, _ in line_ranges(cells.shown, width)][1:]
    if cells.starts is None or not breaks:
        return breaks or _UNWRAPPED
    columns = sorted({bisect_left(cells.starts, at) for at in breaks})
    return [column for column in columns if 0 < column < len(line)]


class CellWrap(WrappedDocument):
    """Sections of the lines of a `CellDocument`."""

    document: CellDocument

    def __init__(self, document: CellDocument, width: int = 0, tab_width: int = 4) -> None:
        self._rows = PrefixSums()
        super().__init__(document, width, tab_width)

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        """Wrap everything afresh; 0 is no wrapping."""
        self._width = width
        if tab_width:
            self._tab_width = tab_width
        self._wrap_offsets = [
            wrap_columns(line, width, self._tab_width) for line in self.document.lines
        ]
        self._rows = PrefixSums(len(offsets) + 1 for offsets in self._wrap_offsets)

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        """Follow an edit of the document; the locations are in order."""
        first = start[0]
        changed = [
            wrap_columns(line, self._width, self._tab_width)
            for line in self.document[first : new_end[0] + 1]
        ]
        self._wrap_offsets[first : old_end[0] + 1] = changed
        self._rows.splice(first, old_end[0] + 1, [len(offsets) + 1 for offsets in changed])

    @property
    def wrapped(self) -> bool:
        return self._rows.total > len(self._rows)

    @property
    def height(self) -> int:
        return self._rows.total

    @property
    def tab_width(self) -> int:
        return self._tab_width

    @property
    def lines(self) -> list[list[str]]:
        return [self.get_sections(row) for row in range(self.document.line_count)]

    def cells(self, line: int) -> LineCells:
        return line_cells(self.document[line], self._tab_width)

    def section_at(self, row: int) -> tuple[int, int]:
        """Line and section of a row; the nearest row for one that is outside."""
        line, section = self._rows.find(max(row, 0))
        return line, min(section, len(self._wrap_offsets[line]))

    def section_span(self, line: int, section: int) -> tuple[int, int]:
        """Columns of the line, from and to (exclusive), that a section shows."""
        offsets = self._wrap_offsets[line]
        start = offsets[section - 1] if section else 0
        end = offsets[section] if section < len(offsets) else len(self.document[line])
        return start, end

    def row_of(self, location: Location) -> int:
        line, column = location
        return self._rows.before(line) + bisect_right(self._wrap_offsets[line], column)

    def location_to_offset(self, location: Location) -> Offset:
        line = min(max(location[0], 0), self.document.line_count - 1)
        column = min(max(location[1], 0), len(self.document[line]))
        section = bisect_right(self._wrap_offsets[line], column)
        start, _ = self.section_span(line, section)
        cells = self.cells(line)
        return Offset(cells.left(column) - cells.left(start), self._rows.before(line) + section)

    def offset_to_location(self, offset: Offset) -> Location:
        line, section = self.section_at(offset[1])
        return line, self.get_target_document_column(line, offset[0], section)

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        """Column of a line that is drawn at a screen column of one of its sections."""
        count = len(self._wrap_offsets[line_index]) + 1
        section = y_offset % count
        start, end = self.section_span(line_index, section)
        cells = self.cells(line_index)
        column = cells.at(cells.left(start) + max(x_offset, 0))
        if section < count - 1 and column >= end:
            return max(cells.at(cells.left(end) - 1), start)
        return max(start, min(column, end))

    def get_sections(self, line_index: int) -> list[str]:
        """What each row of a line shows."""
        cells = self.cells(line_index)
        count = len(self._wrap_offsets[line_index]) + 1
        spans = (self.section_span(line_index, section) for section in range(count))
        return [cells.shown[cells.start(start) : cells.start(end)] for start, end in spans]

    def get_tab_widths(self, line_index: int) -> list[int]:
        """Empty: tabs are expanded already in what `get_sections` returns."""
        return []


class CellNavigator(DocumentNavigator):
    """Moves by what is drawn: up and down by row, left and right by picture."""

    def __init__(self, wrapped: CellWrap) -> None:
        super().__init__(wrapped)
        self._wrap = wrapped

    def get_location_left(self, location: Location) -> Location:
        line, column = location
        if column == 0:
            return (line - 1, len(self._wrap.document[line - 1])) if line else (0, 0)
        cells = self._wrap.cells(line)
        if cells.lefts is None:
            return line, column - 1
        return line, bisect_left(cells.lefts, cells.lefts[column - 1])

    def get_location_right(self, location: Location) -> Location:
        line, column = location
        text = self._wrap.document[line]
        if column >= len(text):
            last = line == self._wrap.document.line_count - 1
            return (line, len(text)) if last else (line + 1, 0)
        cells = self._wrap.cells(line)
        if cells.lefts is None:
            return line, column + 1
        return line, bisect_right(cells.lefts, cells.lefts[column], hi=len(text))

    def get_location_above(self, location: Location) -> Location:
        left, row = self._wrap.location_to_offset(location)
        if row == 0:
            return 0, 0
        return self._wrap.offset_to_location(Offset(max(left, self.last_x_offset), row - 1))

    def get_location_below(self, location: Location) -> Location:
        left, row = self._wrap.location_to_offset(location)
        if row >= self._wrap.height - 1:
            return self._wrap.document.end
        return self._wrap.offset_to_location(Offset(max(left, self.last_x_offset), row + 1))
