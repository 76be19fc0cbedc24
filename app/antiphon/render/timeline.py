"""Earlier versions of texts and pages, made from everything that was ever there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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

    def fate(self, version: int) -> Fate | None:
        """Return what a version does to them; None if it knows nothing of them."""
        if self.until == version and self.since < version:
            return Fate.GONE
        if not self.since <= version < (self.until or version + 1):
            return None
        return Fate.NEW if self.since == version else Fate.KEPT


@dataclass(frozen=True, slots=True)
class VersionPiece:
    """Some text of a version, or what went with it."""

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

    def pieces(self, version: int, *, shows_change: bool = True) -> list[VersionPiece]:
        """Return the text of a version, with what it brought and what it took away.

        Args:
            shows_change: whether that is told from the rest; only the text if not.
        """
        found: list[VersionPiece] = []
        for one in self.texts:
            fate = one.fate(version)
            if not shows_change:
                fate = Fate.KEPT if fate is Fate.NEW else None if fate is Fate.GONE else fate
            if fate is None:
                continue
            text = one.text
            if found and (found[-1].principal, found[-1].fate) == (one.principal, fate):
                text = found.pop().text + text
            found.append(VersionPiece(text, one.principal, fate))
        return found

    def lines(self, version: int, *, shows_change: bool = True) -> VersionLines:
        """Return the lines of a version around its first change, or its beginning; see `pieces`."""
        lines: list[list[VersionPiece]] = [[]]
        pieces, changed = self.pieces(version, shows_change=shows_change), 0
        ends = 0
        for piece in pieces:
            if piece.fate is not Fate.KEPT:
                changed = ends
                break
            ends += piece.text.count("\n")
        first, last = max(0, changed - LINES_AROUND), changed + LINES_AROUND
        at = 0
        for piece in pieces:
            begin, *others = piece.text.split("\n")
            for number, line in enumerate((begin, *others)):
                if number:
                    at += 1
                    if first < at <= last:
                        lines.append([])
                if line and first <= at <= last:
                    room = LONGEST_LINE - sum(len(one.text) for one in lines[-1])
                    lines[-1].append(VersionPiece(line[:room], piece.principal, piece.fate))
        # What a text ends with is the end of its last line, not one more.
        is_ended = bool(pieces) and pieces[-1].text.endswith("\n")
        if is_ended and at <= last and len(lines) > 1:
            lines.pop()
        below = max(0, at - last - is_ended)
        return VersionLines(tuple(map(tuple, lines)), first, below, changed - first)


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
        self._touched: dict[str, list[int]] = {}
        self._versions: dict[str, list[int]] = {}
        for step in steps:
            for block, version in step.blocks.items():
                self._touched.setdefault(block, []).append(step.version)
                self._versions.setdefault(block, []).append(version)

    def version_at(self, block: str, version: int, newest: int) -> int:
        """Return the version that a block had at one of the context; 0 if it was not there yet.

        Args:
            newest: the block's own newest version.
        """
        touched = self._touched.get(block, ())
        later = bisect_right(touched, version)
        return self._versions[block][later] - 1 if later < len(touched) else newest
