"""Renderer of a model's thinking: one line with its length, or dimmed text."""

from __future__ import annotations

from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell, RenderedLine
from antiphon.render.status_label import count_of, end_label
from antiphon.render.view import CellView
from antiphon.render.wrap import WrapPiece, clipped, compose
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.enums import Status


def thinking_head(view: CellView, width: int, theme: CellTheme) -> RenderedLine:
    """The line that says that there is thinking; folded, it has the place of all the text."""
    parts = ["thinking…" if view.status == Status.RUNNING else "thinking"]
    if view.text:
        parts.append(count_of(line_count(view.text), "line"))
    if view.status == Status.ERROR:
        parts.append(end_label(view))
    mark = "▸ " if view.collapsed else "▾ "
    pieces = clipped([WrapPiece(mark + " · ".join(parts), theme.fold)], width, theme.dim)
    if view.collapsed:
        pieces.append(WrapPiece("", theme.fold, 0, len(view.text)))
    return compose(pieces)


def folded_thinking(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    """One line in place of the text."""
    return RenderedCell.of_lines([thinking_head(view, width, theme)])
