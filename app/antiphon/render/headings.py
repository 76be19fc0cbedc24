"""Headings of a Markdown text, followed through its changes at the cost of the lines changed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from antiphon.render.display import displayable_in_a_row
from antiphon_kernel.types.records import TextSplice

_MARK: Final = re.compile(
    r"^ {0,3}(?:(?P<level>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?"
    r"|(?P<fence>`{3,}[^`\n]*|~{3,}[^\n]*))$",
    re.MULTILINE,
)
_CLOSING: Final = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_FORMATTING: Final = re.compile(
    r"(?P<mark>\*{1,3}|~~|\b_{1,3}|`{1,2})(?P<inside>(?=\S).+?(?<=\S))(?P=mark)"
    r"|\[(?P<link>[^\]\n]*)\]\([^)\n]*\)"
)
_BEFORE: Final = re.compile(r"^(?:#{1,6}|>|[-*+])[ \t]+")
_NESTED: Final = 3
"""Marks within marks that are taken away."""

_LONGEST_TITLE: Final = 200
_LONGEST_LINE: Final = 400


class Heading(NamedTuple):
    """A heading that is written with `#`."""

    offset: int
    """Of its line in the text."""
    level: int
    title: str
    """Without the marks of Markdown."""


class _Mark(NamedTuple):
    """A line that is a heading, or that opens or closes a fence."""

    offset: int
    level: int
    title: str
    fence: str


class Headings:
    """The headings of one text, outside of its fences."""

    def __init__(self, text: str) -> None:
        self._marks: list[_Mark] = []
        self.characters_read = 0
        """Code points that were searched; for measuring."""
        self._read(text, 0, len(text))

    def update(self, text: str, splices: Iterable[TextSplice]) -> None:
        """Follow sequential splices, of which `text` is the result."""
        low = high = -1
        for splice in splices:
            start, end = splice.offset, splice.offset + splice.deleted
            shift = len(splice.inserted) - splice.deleted
            first, behind = self._index(start), self._index(end)
            self._marks[first:] = [
                mark._replace(offset=mark.offset + shift) for mark in self._marks[behind:]
            ]
            if low < 0:
                low, high = start, start + len(splice.inserted)
            else:
                low = min(low, start)
                high = max(high + shift if high >= end else start, start + len(splice.inserted))
        if low >= 0:
            self._read(text, low, high)

    def found(self) -> Sequence[Heading]:
        headings: list[Heading] = []
        fence = ""
        for mark in self._marks:
            if fence:
                closes = mark.fence.strip(fence[0]).strip() == "" and mark.fence.startswith(fence)
                fence = "" if closes else fence
            elif mark.fence:
                fence = mark.fence[: len(mark.fence) - len(mark.fence.lstrip(mark.fence[0]))]
            elif title := without_marks(_CLOSING.sub("", mark.title[:_LONGEST_TITLE])):
                headings.append(Heading(mark.offset, mark.level, title))
        return headings

    def _read(self, text: str, low: int, high: int) -> None:
        """Search the lines of a range again."""
        low = text.rfind("\n", 0, low) + 1
        high = text.find("\n", high)
        if high < 0:
            high = len(text)
        self.characters_read += high - low
        self._marks[self._index(low) : self._index(high + 1)] = [
            _Mark(
                found.start(), len(found["level"] or ""), found["title"] or "", found["fence"] or ""
            )
            for found in _MARK.finditer(text, low, high)
        ]

    def _index(self, offset: int) -> int:
        return bisect_left(self._marks, offset, key=lambda mark: mark.offset)


def without_marks(text: str) -> str:
    """Return a line of Markdown without the marks at its start and around its words."""
    text = _BEFORE.sub("", text.strip())
    for _ in range(_NESTED):
        text = _FORMATTING.sub(lambda found: found["inside"] or found["link"] or "", text)
    return text.strip()


def first_line(text: str) -> str:
    """Return the first line of a Markdown text, as a row can show it."""
    return displayable_in_a_row(without_marks(text.strip().partition("\n")[0][:_LONGEST_LINE]))
