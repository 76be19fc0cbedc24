"""One block's picture: the renderer of its kind."""

from __future__ import annotations

from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.render.plain import plain_lines
from antiphon.render.view import CellView


def render_cell(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    """Draw a block in at most `width` columns."""
    return RenderedCell.of_lines(list(plain_lines(view.text, width, theme.text)))
