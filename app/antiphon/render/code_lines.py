"""Code on its own background, cut at the width, not at words; files as code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.style import Style

from antiphon.render.canvas import Canvas
from antiphon.render.cell_theme import CellTheme, CodeTheme
from antiphon.render.display import SourceLines
from antiphon.render.highlight import highlighted_lines
from antiphon.render.lines import RenderedCell, RenderedLine
from antiphon.render.plain import PlainCutter
from antiphon.render.segments import SegmentStart, TextStream
from antiphon.render.wrap import WrapPiece, expand_tabs, wrap

MARGIN: Final = " "
"""Stands before and behind every row of code."""
CODE_TAB: Final = 4


def code_rows(
    parts: Sequence[tuple[str, Style]], offset: int, width: int, theme: CodeTheme, lead: int = 0
) -> Iterator[list[WrapPiece]]:
    """The rows of one line of code.

    `offset` is where the line starts in the block's text; its first `lead` code points are not
    from the text (a tab of which a part is indentation of what the code stands in).
    """
    pieces: list[WrapPiece] = []
    column = at = 0
    for text, style in parts:
        if at < lead:
            spaces = text[: lead - at]
            pieces.append(WrapPiece(spaces, style))
            text = text[lead - at :]
            at = column = len(spaces) + at
        for piece in expand_tabs(text, style, offset + at - lead, CODE_TAB, column):
            pieces.append(piece)
            column += len(piece.text)
        at += len(text)
    if not pieces:
        pieces = [WrapPiece("", theme.plain, offset)]
    margin = WrapPiece(MARGIN, theme.plain)
    inner = width - 2 * len(MARGIN)
    for row in wrap(pieces, inner, words=False):
        yield [margin, *row]


def file_cell(text: str, language: str, width: int, theme: CellTheme) -> RenderedCell:
    """The whole text, coloured as `language`."""
    source = SourceLines(text)
    canvas = Canvas(width)
    lines = highlighted_lines("\n".join(source.lines), language, theme.code)
    for parts, start in zip(lines, source.starts, strict=False):
        for row in code_rows(parts, start, width, theme.code):
            canvas.row(row, fill=theme.code.plain)
    rendered: list[RenderedLine] = canvas.lines
    return RenderedCell.of_lines(rendered)


class CodeStream:
    """Renderer of a part of a file that is too long to be coloured."""

    def __init__(self, width: int, theme: CellTheme) -> None:
        self._width = width
        self._theme = theme

    def update(self, text: str) -> RenderedCell:
        return file_cell(text, "", self._width, self._theme)


class CodeCutter(PlainCutter):
    """Cuts a file behind a line."""

    def __init__(self, width: int, theme: CellTheme) -> None:
        super().__init__(width, theme.text)
        self._theme = theme

    def stream(self, start: SegmentStart) -> TextStream:
        return CodeStream(self._width, self._theme)
