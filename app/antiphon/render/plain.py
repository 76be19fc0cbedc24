"""Text that is shown as it is, line by line."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final

from rich.style import Style

from antiphon.render.display import SourceLines
from antiphon.render.lines import LineChunk, RenderedCell, RenderedLine
from antiphon.render.segments import (
    NEWLINE,
    SEGMENT,
    Renderer,
    SegmentStart,
    end_of_long_line,
)
from antiphon.render.terminal_output import (
    PLAIN,
    TAB,
    SgrState,
    SgrStyles,
    TerminalDecoder,
    states_after,
)
from antiphon.render.wrap import WrapPiece, compose, expand_tabs, wrap
from antiphon_kernel.text.splice_diff import common_prefix

_RETURN: Final = re.compile(r"[\r\n]")

_CHUNK: Final = 50
"""Lines that are drawn, and dropped after an edit, together."""


class PlainStream:
    """Draws a text again and again as it changes; finished lines are drawn once."""

    def __init__(
        self,
        width: int,
        style: Style,
        *,
        lead: WrapPiece | None = None,
        decoder: TerminalDecoder | None = None,
        state: SgrState = PLAIN,
    ) -> None:
        """Args:
        lead: stands before the first row, and as many spaces before the others.
        decoder: reads the lines as a terminal does; without one they are shown as they are.
        state: the state that the text begins in.
        """
        self._width = width
        self._style = style
        self._lead = lead
        self._decoder = decoder
        self._states = [state]
        """At the start of the text, and at the end of each section."""
        self._text = ""
        self._sections: list[LineChunk] = []
        self._ends: list[int] = []
        """The end of each section, as an offset into the text."""

    def update(self, text: str) -> RenderedCell:
        r"""The picture of `text`, of which a final ``\n`` makes no line."""
        if not text.startswith(self._text):
            self._forget(common_prefix(self._text, text))
        self._text = text
        start = self._ends[-1] if self._ends else 0
        source = SourceLines(text[start:], start)
        unfinished = len(source) - 1
        for first in range(0, unfinished, _CHUNK):
            end = min(first + _CHUNK, unfinished)
            self._sections.append(self._section(text, source, first, end))
            self._ends.append(source.starts[end])
        live: list[LineChunk] = []
        if source.lines[unfinished] or not self._sections:
            live = [self._section(text, source, unfinished, unfinished + 1)]
            self._states.pop()
        return RenderedCell(live, self._sections, len(self._sections))

    def _forget(self, kept: int) -> None:
        count = len(self._ends)
        while count and self._ends[count - 1] > kept:
            count -= 1
        self._sections = self._sections[:count]
        self._ends = self._ends[:count]
        del self._states[count + 1 :]

    def _section(self, text: str, source: SourceLines, first: int, end: int) -> LineChunk:
        base = source.starts[first]
        state = self._states[-1]
        lines: list[RenderedLine] = []
        above = self._sections[-1].end_line if self._sections else 0
        for number in range(first, end):
            lead = self._lead
            if lead is not None and (above or lines):
                lead = WrapPiece(" " * len(lead.text), self._style)
            shown, start = source.lines[number], source.starts[number]
            if self._decoder is None:
                pieces = expand_tabs(shown, self._style, start - base, TAB)
            else:
                raw = text[start : start + len(shown)]
                pieces, state = self._decoder.pieces(raw, shown, start - base, state)
            lines.extend(self._rows(pieces, lead))
        self._states.append(state)
        return LineChunk(base, above, lines)

    def _rows(self, pieces: list[WrapPiece], lead: WrapPiece | None) -> Iterator[RenderedLine]:
        before = [lead] if lead else []
        width = self._width - (len(lead.text) if lead else 0)
        for row in wrap(pieces, width):
            yield compose([*before, *row])
            before = [WrapPiece(" " * len(lead.text), self._style)] if lead else []


class PlainCutter:
    """Cuts text behind a line, and a line that is too long anywhere."""

    initial: Final[Hashable] = PLAIN

    def __init__(
        self,
        width: int,
        style: Style,
        *,
        lead: WrapPiece | None = None,
        styles: SgrStyles | None = None,
        size: int = SEGMENT,
    ) -> None:
        """Args:
        lead: stands before the first row, and as many spaces before the others.
        styles: those of output, which is read as a terminal does; None for other text.
        size: code points from which a segment ends.
        """
        self.text_width = width
        self._style = style
        self._lead = lead
        self._styles = styles
        self._size = size

    def next_start(self, text: str, start: SegmentStart) -> SegmentStart | None:
        offset = text.find("\n", start.offset + self._size) + 1
        breaks = NEWLINE if self._styles is None else _RETURN
        long = end_of_long_line(text, start.offset, offset or len(text), breaks)
        offset = long or offset
        if not offset or offset == len(text):
            return None
        state = start.state
        if self._styles is not None and isinstance(state, SgrState):
            state = states_after(text, state, start.offset, offset)
        return SegmentStart(offset, min(offset + SEGMENT, len(text)) if long else offset, state)

    def renderer(self, start: SegmentStart) -> Renderer:
        lead = self._lead
        if lead is not None and start.offset:
            lead = WrapPiece(" " * len(lead.text), self._style)
        decoder = None if self._styles is None else TerminalDecoder(self._styles)
        state = start.state if isinstance(start.state, SgrState) else PLAIN
        return PlainStream(
            self.text_width, self._style, lead=lead, decoder=decoder, state=state
        ).update
