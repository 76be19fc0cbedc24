"""Text that is shown as it is, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.style import Style

from antiphon.render.display import SourceLines
from antiphon.render.lines import LineChunk, RenderedCell, RenderedLine
from antiphon.render.wrap import WrapPiece, compose, expand_tabs, wrap
from antiphon_kernel.text.affixes import common_prefix

TAB: Final = 8
"""Columns from one tab stop to the next in plain text, as terminals have it."""

_CHUNK: Final = 50
"""Lines that are drawn, and dropped after an edit, together."""


class PlainStream:
    """Draws a text again and again as it changes; finished lines are drawn once."""

    def __init__(self, width: int, style: Style, *, lead: WrapPiece | None = None) -> None:
        """`lead` stands before the first row, and as many spaces before the others."""
        self._width = width
        self._style = style
        self._lead = lead
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
            self._sections.append(self._section(source, first, end))
            self._ends.append(source.starts[end])
        live: list[LineChunk] = []
        if source.lines[unfinished] or not self._sections:
            live = [self._section(source, unfinished, unfinished + 1)]
        return RenderedCell(live, self._sections, len(self._sections))

    def _forget(self, kept: int) -> None:
        count = len(self._ends)
        while count and self._ends[count - 1] > kept:
            count -= 1
        self._sections = self._sections[:count]
        self._ends = self._ends[:count]

    def _section(self, source: SourceLines, first: int, end: int) -> LineChunk:
        base = source.starts[first]
        lines: list[RenderedLine] = []
        above = self._sections[-1].end_line if self._sections else 0
        for number in range(first, end):
            lead = self._lead
            if lead is not None and (above or lines):
                lead = WrapPiece(" " * len(lead.text), self._style)
            lines.extend(self._rows(source.lines[number], source.starts[number] - base, lead))
        return LineChunk(base, above, lines)

    def _rows(self, line: str, offset: int, lead: WrapPiece | None) -> Iterator[RenderedLine]:
        before = [lead] if lead else []
        if not line:
            yield compose([*before, WrapPiece("", self._style, offset)])
            return
        width = self._width - (len(lead.text) if lead else 0)
        for row in wrap(expand_tabs(line, self._style, offset, TAB), width):
            yield compose([*before, *row])
            before = [WrapPiece(" " * len(lead.text), self._style)] if lead else []
