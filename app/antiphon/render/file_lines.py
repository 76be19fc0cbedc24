"""A file's text as code."""

from __future__ import annotations

from antiphon.render.canvas import Canvas
from antiphon.render.cell_theme import CellTheme
from antiphon.render.code_lines import code_rows
from antiphon.render.display import SourceLines
from antiphon.render.highlight import highlighted_lines
from antiphon.render.lines import RenderedCell, RenderedLine


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
