r"""A block's text as the text area wants it, and its lines cut into screen rows.

Lines end at ``\n`` only, nothing is changed. A range of the text may be folded: in `lines`, and for
locations, one character stands for it. Offsets and `text` are those of the exact text.

Offsets, rows and columns count from 0. A row shows a section of a line; the text area's own class
for this keeps one entry a row and walks all of them for a newline; this one keeps sums.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, overload

from textual.document._document import DocumentBase, EditResult, Location, Newline
from textual.document._document_navigator import DocumentNavigator
from textual.document._wrapped_document import WrappedDocument
from textual.geometry import Offset, Size

from antiphon.render.display import sanitize_for_display
from antiphon.render.wrap import graphemes, is_one_cell_each, line_ranges
from antiphon.widgets.prefix_sums import PrefixSums
from antiphon_kernel.types.records import TextSplice

FOLDED: Final = re.compile("[\ud800-\udfff]")
"""A character that stands for a folded range: no text has a surrogate."""

_STAND_INS: Final = range(0xD800, 0xDC00)


class Replaced(NamedTuple):
    """Location range of a splice: the old text reached to `old_end`, the new text to `new_end`."""

    start: Location
    old_end: Location
    new_end: Location


class FoldedRange(NamedTuple):
    """Code points `offset` to `end` (exclusive) of the exact text, shown as one character."""

    offset: int
    end: int


class CellDocument(DocumentBase):
    """Text by line. Every conversion and every edit costs what it touches, not the whole text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._sizes = PrefixSums(len(line) + 1 for line in self._lines)
        self._text: str | None = text
        self._folds: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        """Labels of the folded ranges, by the characters that stand for them."""

    @property
    def text(self) -> str:
        """The exact text; joined when asked for."""
        if self._text is None:
            self._text = self._exact("\n".join(self._lines))
        return self._text

    @property
    def newline(self) -> Newline:
        return "\n"

    @property
    def lines(self) -> list[str]:
        return self._lines

    @property
    def line_count(self) -> int:
        return len(self._lines)

    @property
    def length(self) -> int:
        """Code points."""
        return self._sizes.total - 1

    @property
    def start(self) -> Location:
        return (0, 0)

    @property
    def end(self) -> Location:
        return (len(self._lines) - 1, len(self._lines[-1]))

    def get_line(self, index: int) -> str:
        return self._lines[index]

    @overload
    def __getitem__(self, line_index: int) -> str: ...
    @overload
    def __getitem__(self, line_index: slice) -> list[str]: ...
    def __getitem__(self, line_index: int | slice) -> str | list[str]:
        return self._lines[line_index]

    def get_size(self, indent_width: int) -> Size:
        """Width 0: the text is always wrapped."""
        return Size(0, len(self._lines))

    def offset_of(self, location: Location) -> int:
        """Code points in front of a location; the nearest end for one that is outside."""
        row, column = location
        if row < 0:
            return 0
        if row >= len(self._lines):
            return self.length
        column = max(0, min(column, len(self._lines[row])))
        if self._folds:
            column = self._size(self._lines[row][:column]) - 1
        return self._sizes.before(row) + column

    def location_of(self, offset: int) -> Location:
        """Line and column of an offset; the nearest end for one that is outside.

        For one inside of a folded range it is where that starts.
        """
        row, column = self._sizes.find(max(0, min(offset, self.length)))
        if self._folds:
            for fold in FOLDED.finditer(self._lines[row]):
                if column <= fold.start():
                    break
                column = max(fold.start(), column - len(self._folds[fold[0]]) + 1)
        return row, column

    def get_text_range(self, start: Location, end: Location) -> str:
        top, bottom = sorted((start, end))
        low, high = (self.location_of(self.offset_of(place)) for place in (top, bottom))
        return self._exact(self._shown(low, high))

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        top, bottom = sorted((start, end))
        replaced = self.get_text_range(top, bottom)
        offset = self.offset_of(top)
        done = self.splice(TextSplice(offset, len(replaced), text))
        return EditResult(done.new_end, replaced)

    def splice(self, splice: TextSplice) -> Replaced:
        """Apply one splice, in code points. Raises ValueError if it is outside the text."""
        behind = splice.offset + splice.deleted
        if splice.offset < 0 or splice.deleted < 0 or behind > self.length:
            raise ValueError(f"{splice} is outside a text of {self.length} code points")
        start, end, inserted = splice.offset, behind, splice.inserted
        for fold in self.folds:
            if start >= fold.end or end <= fold.offset or start <= fold.offset < fold.end <= end:
                continue
            text = self.text
            inserted = text[fold.offset : start] + inserted + text[end : fold.end]
            start, end = min(start, fold.offset), max(end, fold.end)
        return self._replace(start, end, inserted)

    # Folding

    @property
    def folds(self) -> list[FoldedRange]:
        """The folded ranges, in order."""
        found: list[FoldedRange] = []
        for row, line in enumerate(self._lines) if self._folds else ():
            for fold in FOLDED.finditer(line):
                offset = self.offset_of((row, fold.start()))
                found.append(FoldedRange(offset, offset + len(self._folds[fold[0]])))
        return found

    def fold(self, offset: int, end: int, label: str) -> Replaced:
        """Show one character in the place of a range; ranges folded in it are part of it then.

        Raises:
            ValueError: if nothing is in the range, or so many are folded that no more may be.
        """
        unused = (one for one in map(chr, _STAND_INS) if one not in self._folds)
        if (character := next(unused, None)) is None:
            raise ValueError(f"{len(_STAND_INS)} ranges are folded already")
        low, high = self.location_of(offset), self.location_of(end)
        text = self.get_text_range(low, high)
        if not text:
            raise ValueError(f"no text from {offset} to {end} can be folded")
        offset = self.offset_of(low)
        self._folds[character], self.labels[character] = text, label
        return self._replace(offset, offset + len(text), character)

    def unfold(self, fold: FoldedRange) -> Replaced:
        return self._replace(*fold, self.text[fold.offset : fold.end])

    def _shown(self, start: Location, end: Location) -> str:
        (first, low), (last, high) = start, end
        if first == last:
            return self._lines[first][low:high]
        between = self._lines[first + 1 : last]
        return "\n".join((self._lines[first][low:], *between, self._lines[last][:high]))

    def _exact(self, text: str) -> str:
        return FOLDED.sub(lambda fold: self._folds[fold[0]], text) if self._folds else text

    def _size(self, line: str) -> int:
        """Return the code points of a line and its end in the exact text."""
        folded = FOLDED.findall(line) if self._folds else ()
        return len(line) + 1 + sum(len(self._folds[one]) - 1 for one in folded)

    def _replace(self, offset: int, end: int, shown: str) -> Replaced:
        """Replace a range, which cuts no fold in two, by what is shown in its place."""
        first, low = start = self.location_of(offset)
        last, high = old_end = self.location_of(end)
        came = shown.split("\n")
        new_end = (first + len(came) - 1, len(came[-1]) + (low if len(came) == 1 else 0))
        for character in FOLDED.findall(self._shown(start, old_end)) if self._folds else ():
            del self._folds[character], self.labels[character]
        came[0] = self._lines[first][:low] + came[0]
        came[-1] += self._lines[last][high:]
        self._lines[first : last + 1] = came
        self._sizes.splice(first, last + 1, map(self._size, came))
        self._text = None
        return Replaced(start, old_end, new_end)


_UNWRAPPED: list[int] = []
_ROWS_AT_ONCE = 16
_LEAST_AT_ONCE = 64
_WIDE: Final = re.compile(f"\t|{FOLDED.pattern}")
"""Characters that take as many cells as they want."""


class LineCells(NamedTuple):
    """A line as it is drawn."""

    shown: str
    """Tabs expanded, dangerous characters replaced, labels in the place of folded ranges."""
    lefts: Sequence[int]
    """Column of each code point of the line, and of its end; equal inside one picture."""
    starts: Sequence[int]
    """Index in `shown` of each code point of the line, and of its end."""

    def at(self, left: int) -> int:
        """The code point drawn at a screen column of the unwrapped line."""
        found = bisect_right(self.lefts, max(left, 0)) - 1
        return bisect_left(self.lefts, self.lefts[found])


@lru_cache(256)
def _line_cells(line: str, tab: int, labels: tuple[str, ...]) -> LineCells:
    shown = sanitize_for_display(line)
    if "\t" not in shown and not labels:
        return LineCells(shown, _lefts(shown), range(len(shown) + 1))
    lefts: list[int] = []
    starts: list[int] = []
    parts: list[str] = []
    column = index = at = 0
    folded = iter(labels)
    for wide in (*_WIDE.finditer(line), None):
        part = shown[at : wide.start() if wide else len(shown)]
        inside = _lefts(part)
        lefts += [column + left for left in inside[:-1]]
        starts += range(index, index + len(part))
        column += inside[-1]
        index += len(part)
        parts.append(part)
        if wide is not None:
            lefts.append(column)
            starts.append(index)
            parts.append(" " * (tab - column % tab) if wide[0] == "\t" else next(folded))
            column += len(parts[-1])
            index += len(parts[-1])
            at = wide.end()
    return LineCells("".join(parts), (*lefts, column), (*starts, index))


def _lefts(shown: str) -> Sequence[int]:
    if is_one_cell_each(shown):
        return range(len(shown) + 1)
    lefts: list[int] = []
    column = 0
    for start, end, width in graphemes(shown):
        lefts += [column] * (end - start)
        column += width
    lefts.append(column)
    return lefts


def _first_of_row(piece: str, starts: Sequence[int], row: int) -> int:
    """Return the column with which a row begins that is drawn from index `row` on.

    A label of a folded range is not cut in two, unless it begins a row.
    """
    at = bisect_left(starts, row)
    is_cut = at > 1 and starts[at] > row and FOLDED.match(piece, at - 1) is not None
    return at - 1 if is_cut else at


class CellWrappedDocument(WrappedDocument):
    """Sections of the lines of a `CellDocument`."""

    document: CellDocument

    def __init__(self, document: CellDocument, width: int = 0, tab_width: int = 4) -> None:
        self._rows = PrefixSums()
        self._wrapped_at: tuple[int, int] | None = None
        super().__init__(document, width, tab_width)

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        """Wrap everything at a width, unless it is already; 0 is no wrapping."""
        tab_width = tab_width or self._tab_width
        if self._wrapped_at == (width, tab_width):
            return
        self._wrapped_at = width, tab_width
        self._width, self._tab_width = width, tab_width
        lines = self.document.lines
        self._wrap_offsets = (
            [
                _UNWRAPPED
                if len(line) <= width and line.isascii() and line.isprintable()
                else self._wrap_columns(line)
                for line in lines
            ]
            if width
            else [_UNWRAPPED] * len(lines)
        )
        self._rows = PrefixSums([len(offsets) + 1 for offsets in self._wrap_offsets])

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        """Follow an edit of the document; the locations are in order."""
        first = start[0]
        changed = [self._wrap_columns(line) for line in self.document[first : new_end[0] + 1]]
        self._wrap_offsets[first : old_end[0] + 1] = changed
        self._rows.splice(first, old_end[0] + 1, [len(offsets) + 1 for offsets in changed])

    def _wrap_columns(self, line: str) -> list[int]:
        """Return the columns of a line at which a new row begins."""
        width = self._width
        if not width or (len(line) <= width and is_one_cell_each(line)):
            return _UNWRAPPED
        if FOLDED.search(line) or "\t" in line:
            return list(self._breaks(line)) or _UNWRAPPED
        return [row for row, _ in line_ranges(sanitize_for_display(line), width)[1:]] or _UNWRAPPED

    def _breaks(self, line: str) -> Iterator[int]:
        """Yield the columns at which new rows begin, each found in the rest of the line.

        Tab stops count from the start of a row, and where a row ends depends on nothing but the
        text that it could hold.
        """
        start, size = 0, max(_ROWS_AT_ONCE * self._width, _LEAST_AT_ONCE)
        while True:
            piece = line[start : start + size]
            is_end = start + size >= len(line)
            cells = self._cells_of(piece)
            rows = [row for row, _ in line_ranges(cells.shown, self._width)]
            at = 0
            if len(rows) > (1 if is_end else 2):
                at = _first_of_row(piece, cells.starts, rows[1])
            if at and start + at < len(line):
                start += at
                yield start
            elif is_end:
                return
            else:
                size *= 2

    def _cells_of(self, text: str) -> LineCells:
        """Return the cells of a line without its end, or of a part of one."""
        labels = self.document.labels
        folded = tuple(map(labels.__getitem__, FOLDED.findall(text))) if labels else ()
        return _line_cells(text, self._tab_width, folded)

    @property
    def height(self) -> int:
        return self._rows.total

    def cells(self, line: int, section: int) -> LineCells:
        """Return the cells of a section; columns count from its start."""
        start, end = self.section_span(line, section)
        return self._cells_of(self.document[line][start:end])

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

    def section_of(self, location: Location) -> int:
        return bisect_right(self._wrap_offsets[location[0]], location[1])

    def location_to_offset(self, location: Location) -> Offset:
        line = min(max(location[0], 0), self.document.line_count - 1)
        column = min(max(location[1], 0), len(self.document[line]))
        section = self.section_of((line, column))
        start, _ = self.section_span(line, section)
        left = self.cells(line, section).lefts[column - start]
        return Offset(left, self._rows.before(line) + section)

    def offset_to_location(self, offset: Offset) -> Location:
        line, section = self.section_at(offset[1])
        return line, self.get_target_document_column(line, offset[0], section)

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        """Column of a line that is drawn at a screen column of one of its sections."""
        count = len(self._wrap_offsets[line_index]) + 1
        section = y_offset % count
        start, end = self.section_span(line_index, section)
        cells = self.cells(line_index, section)
        column = min(cells.at(max(x_offset, 0)), end - start)
        if section < count - 1 and column >= end - start:
            column = cells.at(cells.lefts[end - start] - 1)
        return start + column


class WrappedNavigator(DocumentNavigator):
    """Moves by what is drawn: up and down by row, left and right by picture."""

    def __init__(self, wrapped: CellWrappedDocument) -> None:
        super().__init__(wrapped)
        self._wrap = wrapped

    def get_location_left(self, location: Location) -> Location:
        line, column = location
        if column == 0:
            return (line - 1, len(self._wrap.document[line - 1])) if line else (0, 0)
        section = self._wrap.section_of((line, column - 1))
        start, _ = self._wrap.section_span(line, section)
        lefts = self._wrap.cells(line, section).lefts
        return line, start + bisect_left(lefts, lefts[column - 1 - start])

    def get_location_right(self, location: Location) -> Location:
        line, column = location
        text = self._wrap.document[line]
        if column >= len(text):
            last = line == self._wrap.document.line_count - 1
            return (line, len(text)) if last else (line + 1, 0)
        section = self._wrap.section_of(location)
        start, end = self._wrap.section_span(line, section)
        lefts = self._wrap.cells(line, section).lefts
        return line, start + bisect_right(lefts, lefts[column - start], hi=end - start)

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
