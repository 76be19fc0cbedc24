r"""A block's text as the text area wants it: lines end at ``\n`` only, nothing is changed.

A range of the text may be folded: in `lines`, and for locations, one character stands for it.
Offsets and `text` are those of the exact text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, overload

from textual.document._document import DocumentBase, EditResult, Location, Newline
from textual.geometry import Size

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
        """Apply one splice, in code points.

        Raises:
            ValueError: if it is outside the text.
        """
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

    def folded_texts(self, line: str) -> tuple[str, ...]:
        """Return the texts that characters of a line stand for, in order."""
        return tuple(self._folds[one] for one in FOLDED.findall(line)) if self._folds else ()

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
        return len(line) + 1 + sum(len(folded) - 1 for folded in self.folded_texts(line))

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
