"""Places in a Markdown text at which drawing can start, and old sections that fit again."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from antiphon.render.lines import LineChunk


@dataclass(frozen=True, slots=True)
class Fence:
    """An open fence that starts at the margin."""

    start: int
    """Offset of its first line in the text; below 0 if that is in an earlier segment."""
    markup: str
    language: str

    def is_closed_by(self, line: str) -> bool:
        """The line, which is inside the fence, is its closing line."""
        mark = re.escape(self.markup[0])
        return re.fullmatch(rf" {{0,3}}{mark}{{{len(self.markup)},}}[ \t]*", line) is not None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place at which drawing can start, and what has to be known there."""

    offset: int
    witness: int
    """The text up to here decides that there is a cut."""
    is_first: bool = True
    """Nothing is drawn before it."""
    in_list: bool = False
    """Between two items of one list."""
    ordinal: int | None = None
    """Number of the next item, if the list is ordered."""
    blank: bool = False
    """Between two items with a blank line between them."""
    fence: Fence | None = None
    """The open fence that the cut is in."""

    def draws_like(self, other: Checkpoint) -> bool:
        """Equal text behind both cuts gives equal sections."""
        return self._state == other._state

    @property
    def _state(self) -> tuple[object, ...]:
        fence = (self.fence.markup, self.fence.language) if self.fence else None
        return self.is_first, self.in_list, self.ordinal, self.blank, fence


START: Final = Checkpoint(0, 0)


class ReusableTail:
    """Sections of the text before an edit that may fit again behind the edit."""

    def __init__(
        self,
        sections: Sequence[LineChunk],
        cuts: Sequence[Checkpoint],
        count: int,
        edit_end: int,
        distance: int,
    ) -> None:
        """The first `count` were kept; text behind `edit_end` moved by `distance`."""
        self._sections = sections
        self._cuts = cuts
        self._edit_end = edit_end
        self._distance = distance
        self._offsets = [cut.offset for cut in cuts]
        self._next = max(count, bisect_left(self._offsets, edit_end))
        self._step = 1

    def window(self) -> int | None:
        """Return where to stop drawing to check whether an old cut recurs; None: nowhere."""
        if self._next >= len(self._cuts):
            return None
        return self._cuts[self._next].witness + self._distance

    def widen(self) -> None:
        """The window was drawn in vain: look further on next time."""
        self._next += self._step
        self._step *= 2

    def behind(self, cut: Checkpoint, line: int) -> list[tuple[LineChunk, Checkpoint]] | None:
        """Old sections that follow `cut` in the new text, the first from `line` on."""
        offset = cut.offset - self._distance
        index = bisect_left(self._offsets, offset)
        if offset < self._edit_end or index == len(self._cuts):
            return None
        if self._offsets[index] != offset or not self._cuts[index].draws_like(cut):
            return None
        again: list[tuple[LineChunk, Checkpoint]] = []
        for at in range(index + 1, len(self._cuts)):
            section = self._sections[at]
            moved = section.moved(section.start + self._distance, line)
            again.append((moved, self._moved(self._cuts[at], cut)))
            line = moved.end_line
        return again

    def _moved(self, old: Checkpoint, cut: Checkpoint) -> Checkpoint:
        fence = old.fence
        if fence is not None:
            if fence.start >= self._edit_end:
                fence = replace(fence, start=fence.start + self._distance)
            else:
                fence = cut.fence
        return replace(
            old,
            offset=old.offset + self._distance,
            witness=old.witness + self._distance,
            fence=fence,
        )
