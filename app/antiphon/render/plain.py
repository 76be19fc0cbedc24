"""Text that is shown as it is, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.style import Style

from antiphon.render.display import SourceLines
from antiphon.render.lines import RenderedLine
from antiphon.render.wrap import Piece, compose, expand_tabs, wrap

TAB: Final = 8
"""Columns from one tab stop to the next in plain text, as terminals have it."""


def plain_lines(
    text: str, width: int, style: Style, *, indent: str = "", words: bool = True, offset: int = 0
) -> Iterator[RenderedLine]:
    r"""The lines of `text`, wrapped, each behind `indent`; a final ``\n`` makes no line."""
    source = SourceLines(text, offset)
    last = len(source) - 1
    for number, (line, start) in enumerate(zip(source.lines, source.starts, strict=True)):
        if number == last and last and not line:
            return
        yield from line_rows(line, start, width, style, indent=indent, words=words)


def line_rows(
    line: str, start: int, width: int, style: Style, *, indent: str = "", words: bool = True
) -> Iterator[RenderedLine]:
    """The rows of one displayable line that starts at `start` in the block's text."""
    if not line:
        yield compose([Piece(indent, style), Piece("", style, start)])
        return
    lead = [Piece(indent, style)] if indent else []
    for row in wrap(expand_tabs(line, style, start, TAB), width - len(indent), words=words):
        yield compose([*lead, *row])
