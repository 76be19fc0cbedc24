"""Markdown that grows and is edited: what did not change is not drawn again.

The text is cut where Markdown can be parsed afresh: before a top-level block, before an item of a
top-level list, and behind each line of an open fence. A cut counts once all it depends on is
written: `Checkpoint.witness` is how far that reaches. What stands before a cut is a frozen
section. An edit in front of a witness drops that cut and those after it; drawing then starts at
the last cut left and stops as soon as it meets an old cut behind the edit, from where on the old
sections fit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import LineChunk, RenderedCell, RenderedLine
from antiphon.render.markdown_blocks import (
    MarkdownUnit,
    draw_fence_line,
    draw_unit,
    fence_language,
    is_closed_fence,
    units_of,
)
from antiphon.render.wrap import WrapPiece, compose
from antiphon_kernel.text.splice_diff import common_prefix, common_suffix


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


TEXT_WIDTH: Final = 84
"""Columns beyond which text does not get wider: longer lines are hard to read."""

WIDE_WIDTH: Final = 120
"""Columns beyond which code, tables and output do not get wider."""

_ENDED_BY_BLANK: Final = frozenset(
    {"paragraph_open", "heading_open", "hr", "fence", "table_open", "blockquote_open"}
)
_UNDER_TABLE_HEAD: Final = re.compile(r"[ \t]*[-:|][-:| \t]*")


class MarkdownStream:
    """Draws a text again and again as it changes; the result is that of drawing it afresh."""

    def __init__(
        self,
        width: int,
        theme: CellTheme,
        *,
        newlines: bool = False,
        start: Checkpoint = START,
    ) -> None:
        """With `newlines`, each is a line break; `start` is what is known before the text."""
        self._width = min(width, TEXT_WIDTH)
        self._wide = min(width, WIDE_WIDTH)
        self._theme = theme
        self._newlines = newlines
        self._start = start
        self._text = ""
        self._sections: list[LineChunk] = []
        self._cuts: list[Checkpoint] = []
        """`_cuts[i]` is where drawing goes on behind `_sections[i]`."""
        self._leftover: ReusableTail | None = None
        self._shown: dict[int, RenderedLine] = {}
        """Lines that were not frozen in the last picture, by number."""

    def update(self, text: str) -> RenderedCell:
        if not text.startswith(self._text):
            self._forget(text)
        self._text = text
        live = self._draw()
        if not self._sections and not live and self._start.is_first:
            live = [LineChunk(0, 0, [compose([WrapPiece("", self._theme.text, 0)])])]
        self._shown = {
            number: line
            for section in live
            for number, line in enumerate(section.lines, section.first_line)
        }
        return RenderedCell(live, self._sections, len(self._sections))

    def _forget(self, text: str) -> None:
        """Drop the cuts that the edit touches, and keep what may fit again behind it."""
        old = self._text
        kept = common_prefix(old, text)
        count = len(self._cuts)
        while count and self._cuts[count - 1].witness > kept:
            count -= 1
        if count < len(self._cuts):
            edit_end = len(old) - common_suffix(old, text, kept)
            self._leftover = ReusableTail(
                self._sections, self._cuts, count, edit_end, len(text) - len(old)
            )
        self._truncate(count)

    def _truncate(self, count: int) -> None:
        """Keep the first sections; pictures given out go on sharing the old list."""
        if count < len(self._sections):
            self._sections = self._sections[:count]
            self._cuts = self._cuts[:count]

    def _draw(self) -> list[LineChunk]:
        """Freeze what is final, and return the sections of the rest."""
        while True:
            window = self._leftover.window() if self._leftover else None
            end = len(self._text) if window is None else window
            cut = self._cuts[-1] if self._cuts else self._start
            source = SourceLines(self._text[cut.offset : end], cut.offset)
            fence = cut.fence
            live = self._draw_fence(source, fence) if fence else self._draw_blocks(source, cut)
            if live is not None and window is None:
                self._leftover = None
                return live
            if live is not None and self._leftover is not None:
                self._leftover.widen()

    def _freeze(self, start: int, lines: list[RenderedLine], cut: Checkpoint) -> bool:
        """Add a section; True if old sections followed it, so that drawing goes on behind them."""
        above = self._sections[-1] if self._sections else None
        self._sections.append(self._section(start, above, lines))
        self._cuts.append(cut)
        if self._leftover is None:
            return False
        again = self._leftover.behind(cut, self._sections[-1].end_line)
        if again is None:
            return False
        self._sections.extend(section for section, _ in again)
        self._cuts.extend(cut for _, cut in again)
        self._leftover = None
        return True

    def _section(self, start: int, above: LineChunk | None, lines: list[RenderedLine]) -> LineChunk:
        """A section in which a line that looks as before is the line of the picture before."""
        first_line = above.end_line if above else 0
        for index, line in enumerate(lines):
            shown = self._shown.get(first_line + index)
            if shown == line:
                lines[index] = shown
        return LineChunk(start, first_line, lines)

    def _draw_blocks(self, source: SourceLines, cut: Checkpoint) -> list[LineChunk] | None:
        """The sections that are not final; None if drawing has to go on at another cut."""
        from antiphon.render.markdown_tokens import parse

        units = units_of(parse("\n".join(source.lines)), cut.ordinal)
        live: list[LineChunk] = []
        for index, unit in enumerate(units):
            following = units[index + 1] if index + 1 < len(units) else None
            start = source.starts[unit.line]
            is_apart = _is_apart(unit, source, index == 0, cut)
            if not live and following is None and (fence := _open_fence(unit, source)):
                self._enter_fence(unit, source, fence, is_apart)
                return None
            lines = draw_unit(
                unit,
                source,
                self._width,
                self._theme,
                wide=self._wide,
                newlines=self._newlines,
            )
            if is_apart:
                lines.insert(0, compose([]))
            next_cut = None if live else _checkpoint_behind(unit, following, source)
            if next_cut is None:
                above = live[-1] if live else self._sections[-1] if self._sections else None
                live.append(self._section(start, above, lines))
            elif self._freeze(start, lines, next_cut):
                return None
        return live

    def _enter_fence(
        self, unit: MarkdownUnit, source: SourceLines, fence: Fence, is_apart: bool
    ) -> None:
        """Freeze the fence's first line of code."""
        line = unit.line + 1
        lines = self._fence_lines(source, line, fence, fence.start)
        if is_apart:
            lines.insert(0, compose([]))
        behind = source.starts[line + 1]
        self._freeze(fence.start, lines, Checkpoint(behind, behind, is_first=False, fence=fence))

    def _draw_fence(self, source: SourceLines, fence: Fence) -> list[LineChunk] | None:
        """Freeze finished lines of code; None if drawing has to go on at another cut."""
        unfinished = len(source) - 1
        for number, line in enumerate(source.lines):
            start = source.starts[number]
            if fence.is_closed_by(line) and fence.start < 0:
                if number == unfinished:
                    return []
                behind = source.starts[number + 1]
                self._freeze(start, [], Checkpoint(behind, behind, is_first=False))
                return None
            if fence.is_closed_by(line):
                count = len(self._sections)
                while count and self._sections[count - 1].start >= fence.start:
                    count -= 1
                self._truncate(count)
                return None
            if number == unfinished:
                break
            behind = source.starts[number + 1]
            cut = Checkpoint(behind, behind, is_first=False, fence=fence)
            if self._freeze(start, self._fence_lines(source, number, fence, start), cut):
                return None
        if _is_blank(source.lines[unfinished]):
            return []
        start = source.starts[unfinished]
        lines = self._fence_lines(source, unfinished, fence, start)
        above = self._sections[-1] if self._sections else None
        return [self._section(start, above, lines)]

    def _fence_lines(
        self, source: SourceLines, number: int, fence: Fence, base: int
    ) -> list[RenderedLine]:
        return draw_fence_line(
            source.lines[number],
            source.starts[number] - base,
            fence.language,
            self._wide,
            self._theme,
            is_first=base == fence.start,
        )


def _is_apart(unit: MarkdownUnit, source: SourceLines, is_first: bool, cut: Checkpoint) -> bool:
    if is_first:
        return cut.blank if cut.in_list else not cut.is_first
    if unit.follows_item:
        return _is_blank(source.lines[unit.line - 1])
    return True


def _open_fence(unit: MarkdownUnit, source: SourceLines) -> Fence | None:
    """The unit as a fence at the margin that is still open and has a finished line of code."""
    token = unit.tokens[0]
    if token.type != "fence" or unit.line + 2 >= len(source):
        return None
    if is_closed_fence(token, source) or not source.lines[unit.line].startswith(token.markup):
        return None
    return Fence(source.starts[unit.line], token.markup, fence_language(token.info))


def _checkpoint_behind(
    unit: MarkdownUnit, following: MarkdownUnit | None, source: SourceLines
) -> Checkpoint | None:
    """The cut at the unit's end, if nothing that is written later can change the unit."""
    finished = len(source) - 1
    if following is not None:
        # A table is one only with its second line: without it, a row goes on the paragraph above,
        # and with it, an item that holds a bar would be a row if parsing started there.
        may_be_table = following.follows_item and "|" in source.lines[following.line]
        known = following.line + (2 if may_be_table or following.kind == "table_open" else 1)
        if known > finished:
            return None
        if may_be_table and _UNDER_TABLE_HEAD.fullmatch(source.lines[known - 1]):
            return None
        return Checkpoint(
            source.starts[following.line],
            source.starts[known],
            is_first=False,
            in_list=following.follows_item,
            ordinal=following.ordinal if following.follows_item else None,
            blank=following.follows_item and _is_blank(source.lines[following.line - 1]),
        )
    if unit.kind not in _ENDED_BY_BLANK:
        return None
    at = unit.end
    while at < finished and _is_blank(source.lines[at]):
        at += 1
    if at <= unit.end:
        return None
    return Checkpoint(source.starts[at], source.starts[at], is_first=False)


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")
