r"""A block's text as the text area wants it: lines end at ``\n`` only, nothing is changed."""

from __future__ import annotations

from typing import NamedTuple, overload

from textual.document._document import DocumentBase, EditResult, Location, Newline
from textual.geometry import Size

from antiphon.widgets.prefix_sums import PrefixSums
from antiphon_kernel.types.records import TextSplice


class Replaced(NamedTuple):
    """Location range of a splice: the old text reached to `old_end`, the new text to `new_end`."""

    start: Location
    old_end: Location
    new_end: Location


class CellDocument(DocumentBase):
    """Text by line. Every conversion and every edit costs what it touches, not the whole text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._sizes = PrefixSums(len(line) + 1 for line in self._lines)
        self._text: str | None = text

    @property
    def text(self) -> str:
        """The exact text; joined when asked for."""
        if self._text is None:
            self._text = "\n".join(self._lines)
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
        return self._sizes.before(row) + max(0, min(column, len(self._lines[row])))

    def location_of(self, offset: int) -> Location:
        """Line and column of an offset; the nearest end for one that is outside."""
        row, column = self._sizes.find(max(0, min(offset, self.length)))
        return row, column

    def get_index_from_location(self, location: Location) -> int:
        return self.offset_of(location)

    def get_location_from_index(self, index: int) -> Location:
        if not 0 <= index <= self.length:
            raise ValueError(f"offset {index} is outside a text of {self.length} code points")
        return self.location_of(index)

    def get_text_range(self, start: Location, end: Location) -> str:
        top, bottom = sorted((start, end))
        first, low = self.location_of(self.offset_of(top))
        last, high = self.location_of(self.offset_of(bottom))
        if first == last:
            return self._lines[first][low:high]
        between = self._lines[first + 1 : last]
        return "\n".join((self._lines[first][low:], *between, self._lines[last][:high]))

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        top, bottom = sorted((start, end))
        replaced = self.get_text_range(top, bottom)
        offset = self.offset_of(top)
        done = self.splice(TextSplice(offset, len(replaced), text))
        return EditResult(done.new_end, replaced)

    def splice(self, splice: TextSplice) -> Replaced:
        """Apply one splice, in code points.

        Raises:
            ValueError: if it is outside the text.
        """
        behind = splice.offset + splice.deleted
        if splice.offset < 0 or splice.deleted < 0 or behind > self.length:
            raise ValueError(f"{splice} is outside a text of {self.length} code points")
        first, low = start = self.location_of(splice.offset)
        last, high = old_end = self.location_of(behind)
        came = splice.inserted.split("\n")
        new_end = (first + len(came) - 1, len(came[-1]) + (low if len(came) == 1 else 0))
        came[0] = self._lines[first][:low] + came[0]
        came[-1] += self._lines[last][high:]
        self._lines[first : last + 1] = came
        self._sizes.splice(first, last + 1, [len(line) + 1 for line in came])
        self._text = None
        return Replaced(start, old_end, new_end)
