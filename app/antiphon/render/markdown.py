"""Markdown that grows and is edited: what did not change is not drawn again.

The text is cut where Markdown can be parsed afresh: before a top-level block, before an item of a
top-level list, and behind each line of an open fence. A cut counts once all it depends on is
written: `Checkpoint.witness` is how far that reaches. What stands before a cut is a frozen
section. An edit in front of a witness drops that cut and those after it; drawing then starts at
the last cut left.

A long text is cut into segments without parsing it. A blank line before text at the margin ends
every block but a fence, so the best place is there. An open fence is cut behind a line; a list or a
paragraph that does not end is cut before a line at the margin; then, as a table, before any line;
then within one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import (
    SEGMENT,
    LineChunk,
    RenderedCell,
    RenderedLine,
    Renderer,
    SegmentStart,
    end_of_long_line,
)
from antiphon.render.markdown_blocks import (
    FENCE_LINE,
    Fence,
    MarkdownUnit,
    draw_unit,
    fence_behind,
    fence_language,
    is_closed_fence,
    units_of,
)
from antiphon.render.text_lines import code_rows, highlighted_lines
from antiphon.render.wrap import Canvas, WrapPiece, compose
from antiphon_kernel.text.splice_diff import common_prefix


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place at which drawing can start, and what has to be known there."""

    offset: int
    witness: int
    """The text up to here decides that there is a cut."""
    is_first: bool = False
    """Nothing is drawn before it."""
    in_list: bool = False
    """Between two items of one list."""
    ordinal: int | None = None
    """Number of the next item, if the list is ordered."""
    blank: bool = False
    """Between two items with a blank line between them."""
    fence: Fence | None = None
    """The open fence that the cut is in."""
    has_rows: bool = False
    """The text goes on with rows of a table, each a line of its own."""


START: Final = Checkpoint(0, 0, is_first=True)


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

    def update(self, text: str) -> RenderedCell:
        if not text.startswith(self._text):
            kept = common_prefix(self._text, text)
            while self._cuts and self._cuts[-1].witness > kept:
                del self._sections[-1], self._cuts[-1]
        self._text = text
        live = None
        while live is None:
            cut = self._cuts[-1] if self._cuts else self._start
            source = SourceLines(text[cut.offset :], cut.offset)
            live = (
                self._draw_fence(source, cut.fence) if cut.fence else self._draw_blocks(source, cut)
            )
        if not self._sections and not live and self._start.is_first:
            live = [LineChunk(0, [compose([WrapPiece("", self._theme.text, 0)])])]
        return RenderedCell([*self._sections, *live])

    def _freeze(self, start: int, lines: Sequence[RenderedLine], cut: Checkpoint) -> None:
        """Add a section behind which drawing goes on at a cut."""
        self._sections.append(LineChunk(start, lines))
        self._cuts.append(cut)

    def _draw_blocks(self, source: SourceLines, cut: Checkpoint) -> list[LineChunk] | None:
        """The sections that are not final; None if drawing has to go on at another cut."""
        from antiphon.render.markdown_tokens import parse

        units = units_of(parse("\n".join(source.lines)), cut.ordinal)
        live: list[LineChunk] = []
        for index, unit in enumerate(units):
            following = units[index + 1] if index + 1 < len(units) else None
            start = source.starts[unit.line]
            if index == 0:
                is_apart = cut.blank if cut.in_list else not cut.is_first
            else:
                is_apart = not unit.follows_item or _is_blank(source.lines[unit.line - 1])
            if not live and following is None and (fence := _open_fence(unit, source)):
                # Its first line of code is final.
                line = unit.line + 1
                lines = self._fence_lines(source, line, fence, fence.start)
                if is_apart:
                    lines.insert(0, compose([]))
                behind = source.starts[line + 1]
                self._freeze(fence.start, lines, Checkpoint(behind, behind, fence=fence))
                return None
            next_cut = None if live else _checkpoint_behind(unit, following, source)
            lines = draw_unit(
                unit, source, self._width, self._theme, wide=self._wide, newlines=self._newlines
            )
            if is_apart:
                lines.insert(0, compose([]))
            if next_cut is None:
                live.append(LineChunk(start, lines))
            else:
                self._freeze(start, lines, next_cut)
        return live

    def _draw_fence(self, source: SourceLines, fence: Fence) -> list[LineChunk] | None:
        """Freeze finished lines of code; None if drawing has to go on at another cut."""
        unfinished = len(source) - 1
        for number, line in enumerate(source.lines):
            start = source.starts[number]
            found = FENCE_LINE.fullmatch(line)
            is_closed = found is not None and fence_behind(found[1], found[2], fence) is None
            if is_closed and fence.start < 0:
                if number == unfinished:
                    return []
                behind = source.starts[number + 1]
                self._freeze(start, [], Checkpoint(behind, behind))
                return None
            if is_closed:
                while self._sections and self._sections[-1].start >= fence.start:
                    del self._sections[-1], self._cuts[-1]
                return None
            if number == unfinished:
                break
            behind = source.starts[number + 1]
            lines = self._fence_lines(source, number, fence, start)
            self._freeze(start, lines, Checkpoint(behind, behind, fence=fence))
        if _is_blank(source.lines[unfinished]):
            return []
        start = source.starts[unfinished]
        lines = self._fence_lines(source, unfinished, fence, start)
        return [LineChunk(start, lines)]

    def _fence_lines(
        self, source: SourceLines, number: int, fence: Fence, base: int
    ) -> list[RenderedLine]:
        """One line of an open fence at the margin."""
        canvas, theme = Canvas(self._wide), self._theme.code
        parts = highlighted_lines(source.lines[number], fence.language, theme)[0]
        start = [WrapPiece("", self._theme.text, 0)] if base == fence.start else []
        for row in code_rows(parts, source.starts[number] - base, self._wide, theme):
            canvas.row([*start, *row], fill=theme.plain)
            start = []
        return canvas.lines


def _open_fence(unit: MarkdownUnit, source: SourceLines) -> Fence | None:
    """The unit as a fence at the margin that is still open and has a finished line of code."""
    token = unit.tokens[0]
    if token.type != "fence" or unit.line + 2 >= len(source):
        return None
    if is_closed_fence(token, source) or not source.lines[unit.line].startswith(token.markup):
        return None
    return Fence(token.markup, fence_language(token.info), source.starts[unit.line])


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
    return Checkpoint(source.starts[at], source.starts[at])


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")


_APART: Final = re.compile(r"\n[ \t]*\r?\n(?=\S)")
_AT_MARGIN: Final = re.compile(r"\n(?=[^\s|])")
_LINE: Final = re.compile(r"\n")


_GOES_ON: Final = Checkpoint(0, 0, in_list=True)
"""The start of a segment behind another one, if nothing else is known there."""


class MarkdownCutter:
    """Cuts Markdown where parsing can start afresh.

    An ordered list that is cut goes on with the number that is written there.
    """

    def __init__(
        self, width: int, theme: CellTheme, *, newlines: bool = False, size: int = SEGMENT
    ) -> None:
        """`newlines` as of `MarkdownStream`; `size`: code points from which a segment ends."""
        self._width = width
        self.text_width = min(width, TEXT_WIDTH)
        self._theme = theme
        self._newlines = newlines
        self._size = size

    def next_start(self, text: str, start: SegmentStart) -> SegmentStart | None:
        offset = start.offset
        if len(text) - offset <= self._size:
            return None
        end = text.rfind("\n", offset) + 1
        fence = start.state.fence if isinstance(start.state, Checkpoint) else None
        at = offset
        while at < end:
            reach = text.find("\n", at + self._size, end) + 1 or end
            found = FENCE_LINE.search(text, at, reach)
            limit = reach if found is None else found.start()
            if limit >= offset + self._size:
                cut = self._cut(text, offset, at, limit, end, fence)
                if cut is not None:
                    return cut
            if found is None:
                at = reach
                continue
            fence = fence_behind(found[1], found[2], fence)
            at = found.end()
        return self._within_line(text, max(offset, end), len(text), fence)

    def _within_line(
        self, text: str, low: int, high: int, fence: Fence | None
    ) -> SegmentStart | None:
        cut = end_of_long_line(text, low, high)
        if cut is None:
            return None
        state = replace(_GOES_ON, fence=fence)
        return SegmentStart(cut, min(cut + SEGMENT, len(text)), state)

    def _cut(
        self,
        text: str,
        offset: int,
        low: int,
        high: int,
        end: int,
        fence: Fence | None,
    ) -> SegmentStart | None:
        """Find a cut between two places with the same fence, or none, around them."""
        sizes = self._size, 2 * self._size, 4 * self._size
        if fence is not None:
            found = _LINE.search(text, max(low, offset + sizes[2]), high)
            whole = found is not None and found.end() < end
            cut = found.end() if found is not None and whole else high
            long = self._within_line(text, max(low, offset), cut, fence)
            state = replace(_GOES_ON, fence=fence)
            return long or (SegmentStart(cut, cut, state) if whole else None)
        best: SegmentStart | None = None
        for pattern, size in zip((_APART, _AT_MARGIN, _LINE), sizes, strict=True):
            first = max(low - 1, offset + size - 1)
            found = pattern.search(text, first, min(high + 1, end))
            # What follows the cut tells how it is drawn: it has to be there.
            if found is None or found.end() > min(high, len(text) - 1):
                continue
            if best is not None and found.end() >= best.offset:
                continue
            cut = found.end()
            is_blank = not text[text.rfind("\n", 0, cut - 1) + 1 : cut].strip(" \t\r\n")
            has_rows = not is_blank and text[cut] == "|"
            state = replace(_GOES_ON, blank=is_blank, has_rows=has_rows)
            best = SegmentStart(cut, cut + 1, state)
        limit = high if best is None else best.offset
        return self._within_line(text, max(low, offset), limit, None) or best

    def renderer(self, start: SegmentStart) -> Renderer:
        known = start.state if isinstance(start.state, Checkpoint) else START
        newlines = self._newlines or known.has_rows
        return MarkdownStream(self._width, self._theme, newlines=newlines, start=known).update
