"""Earlier versions of texts and pages, made from everything that was ever there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Final, NamedTuple

LINES_AROUND: Final = 150
"""Lines of a text that are shown on either side of a change."""

LONGEST_LINE: Final = 4_000
"""Code points of a line that are shown."""


class Fate(StrEnum):
    """Change of some text in one version."""

    KEPT = "kept"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class TimelineText:
    """Characters in a row that one principal wrote and that were there at the same versions."""

    text: str
    principal: str
    since: int
    """The first version that has them."""
    until: int | None = None
    """The first later version that does not."""


class VersionPiece(NamedTuple):
    """Some text of a line of a version, or what went with it."""

    text: str
    principal: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class VersionLines:
    """Lines of a version around its first change."""

    lines: tuple[tuple[VersionPiece, ...], ...]
    above: int
    """Lines that are left out before them."""
    below: int
    changed: int
    """Index of the first line that the version has changed."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that a text has ever held, in order, up to its newest version."""

    texts: tuple[TimelineText, ...]
    version: int

    def lines(self, version: int, *, shows_change: bool = True) -> VersionLines:
        """Return the lines of a version around its first change, or its beginning.

        Nothing is made of the other lines: they are counted.

        With `shows_change`, what the version brought and what it took away is told from the rest.
        """
        found = list(self._found(version, shows_change=shows_change))
        kept = list(takewhile(lambda part: part[1] is Fate.KEPT, found))
        changed = sum(one.text.count("\n") for one, _ in kept) if len(kept) < len(found) else 0
        first, last = max(0, changed - LINES_AROUND), changed + LINES_AROUND
        lines: list[list[VersionPiece]] = [[]]
        at, room = 0, LONGEST_LINE
        for one, fate in found:
            ends = one.text.count("\n")
            if at > last or at + ends < first:
                at += ends
                continue
            for number, text in enumerate(one.text.split("\n")):
                if number:
                    at += 1
                    if first < at <= last:
                        lines.append([])
                        room = LONGEST_LINE
                if text and room and first <= at <= last:
                    piece = VersionPiece(text[:room], one.principal, fate)
                    if lines[-1] and lines[-1][-1][1:] == piece[1:]:
                        piece = piece._replace(text=lines[-1].pop().text + piece.text)
                    lines[-1].append(piece)
                    room -= min(room, len(text))
        # What a text ends with is the end of its last line, not one more.
        is_ended = bool(found) and found[-1][0].text.endswith("\n")
        if is_ended and at <= last and len(lines) > 1:
            lines.pop()
        below = max(0, at - last - is_ended)
        return VersionLines(tuple(map(tuple, lines)), first, below, changed - first)

    def _found(self, version: int, *, shows_change: bool) -> Iterator[tuple[TimelineText, Fate]]:
        """Yield what a version knows of, and what it does to it."""
        for one in self.texts:
            since, until = one.since, one.until
            if since > version:
                continue
            if until is None or until > version:
                yield one, Fate.NEW if shows_change and since == version else Fate.KEPT
            elif shows_change and until == version and since < version:
                yield one, Fate.GONE


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One change of a context."""

    version: int
    """The version of the context that it made."""
    time: str
    """ISO 8601, UTC."""
    principal: str
    username: str
    operation: str
    blocks: Mapping[str, int]
    """For each block that changed, the version of the block that this made."""


class PageHistory:
    """Changes of a context in a row, up to its newest version."""

    def __init__(self, steps: Sequence[HistoryStep]) -> None:
        self.steps = steps
        self._touched: dict[str, list[HistoryStep]] = {}
        for step in steps:
            for block in step.blocks:
                self._touched.setdefault(block, []).append(step)

    def version_at(self, block: str, version: int, newest: int) -> int:
        """Return a block's version at one of the context, at most `newest`; 0 before its first."""
        touched = self._touched.get(block, ())
        later = bisect_right(touched, version, key=lambda step: step.version)
        return touched[later].blocks[block] - 1 if later < len(touched) else newest
