"""One block's picture, drawn once."""

from __future__ import annotations

from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.render.stream import CellStream
from antiphon.render.view import CellView


def render_cell(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    """Draw a block in at most `width` columns, of which text uses 84 at most."""
    return CellStream(width, theme).update(view)
