"""Places at which a long Markdown text can be cut, found without parsing it.

A blank line before text at the margin ends every block but a fence, so the best place is there. An
open fence is cut behind a line; a list or a paragraph that does not end is cut before a line at the
margin; then, as a table, before any line; then within one.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final, NamedTuple

from antiphon.render.cell_theme import CellTheme
from antiphon.render.markdown import START, TEXT_WIDTH, Checkpoint, Fence, MarkdownStream
from antiphon.render.markdown_blocks import fence_language
from antiphon.render.segments import SEGMENT, Renderer, SegmentStart, end_of_long_line

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_APART: Final = re.compile(r"\n[ \t]*\n(?=\S)")
_AT_MARGIN: Final = re.compile(r"\n(?=[^\s|])")
_LINE: Final = re.compile(r"\n")


class MarkdownState(NamedTuple):
    """All that has to be known of the Markdown before a segment."""

    is_first: bool = False
    is_apart: bool = True
    """A blank row stands between."""
    fence: tuple[str, str] | None = None
    """Marks and language of the fence that is open."""
    has_rows: bool = False
    """The text goes on with rows of a table, each a line of its own."""


class MarkdownCutter:
    """Cuts Markdown where parsing can start afresh."""

    initial: Final[Hashable] = MarkdownState(is_first=True)

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
        state = start.state
        fence = state.fence if isinstance(state, MarkdownState) else None
        at = offset
        while at < end:
            reach = text.find("\n", at + self._size, end) + 1 or end
            found = _FENCE.search(text, at, reach)
            limit = reach if found is None else found.start()
            if limit >= offset + self._size:
                cut = self._cut(text, offset, at, limit, end, fence)
                if cut is not None:
                    return cut
            if found is None:
                at = reach
                continue
            marks, info = found[1], found[2]
            if fence is None:
                if "`" not in info or marks[0] != "`":
                    fence = marks, fence_language(info)
            elif marks.startswith(fence[0]) and not info.strip(" \t"):
                fence = None
            at = found.end()
        return self._within_line(text, max(offset, end), len(text), fence)

    def _within_line(
        self, text: str, low: int, high: int, fence: tuple[str, str] | None
    ) -> SegmentStart | None:
        cut = end_of_long_line(text, low, high)
        if cut is None:
            return None
        state = MarkdownState(is_apart=False, fence=fence)
        return SegmentStart(cut, min(cut + SEGMENT, len(text)), state)

    def _cut(
        self,
        text: str,
        offset: int,
        low: int,
        high: int,
        end: int,
        fence: tuple[str, str] | None,
    ) -> SegmentStart | None:
        """Find a cut between two places with the same fence, or none, around them."""
        sizes = self._size, 2 * self._size, 4 * self._size
        if fence is not None:
            found = _LINE.search(text, max(low, offset + sizes[2]), high)
            whole = found is not None and found.end() < end
            cut = found.end() if found is not None and whole else high
            long = self._within_line(text, max(low, offset), cut, fence)
            state = MarkdownState(is_apart=False, fence=fence)
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
            is_blank = not text[text.rfind("\n", 0, cut - 1) + 1 : cut].strip(" \t\n")
            state = MarkdownState(is_apart=is_blank, has_rows=not is_blank and text[cut] == "|")
            best = SegmentStart(cut, cut + 1, state)
        limit = high if best is None else best.offset
        return self._within_line(text, max(low, offset), limit, None) or best

    def renderer(self, start: SegmentStart) -> Renderer:
        state = start.state
        assert isinstance(state, MarkdownState)
        checkpoint = START
        if not state.is_first:
            fence = None if state.fence is None else Fence(-1, *state.fence)
            checkpoint = Checkpoint(
                0, 0, is_first=False, in_list=True, blank=state.is_apart, fence=fence
            )
        return MarkdownStream(
            self._width,
            self._theme,
            newlines=self._newlines or state.has_rows,
            start=checkpoint,
        ).update
