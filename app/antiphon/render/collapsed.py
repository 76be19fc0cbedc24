"""Folded text: its first lines, each on one row, and how many more there are."""

from __future__ import annotations

from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import RenderedCell, RenderedLine
from antiphon.render.plain import TAB
from antiphon.render.status_label import count_of
from antiphon.render.wrap import WrapPiece, clipped, compose, expand_tabs
from antiphon_kernel.text.lines import line_count


def folded(
    text: str,
    keep: int,
    width: int,
    style: Style,
    theme: CellTheme,
    *,
    lead: WrapPiece | None = None,
) -> RenderedCell:
    """The first `keep` lines and a fold mark; a fold that would hide one line only is left out.

    `lead` stands before the first row, and as many spaces before the others.
    """
    total = line_count(text)
    shown = total if total <= keep + 1 else keep
    head = text
    if shown < total:
        end = -1
        for _ in range(shown):
            end = text.index("\n", end + 1)
        head = text[:end]
    source = SourceLines(head)
    before = [lead] if lead else []
    indent = len(lead.text) if lead else 0
    rows: list[RenderedLine] = []
    for line, start in zip(source.lines[: max(shown, 1)], source.starts, strict=False):
        pieces = expand_tabs(line, style, start, TAB)
        rows.append(compose([*before, *clipped(pieces, width - indent, theme.dim)]))
        before = [WrapPiece(" " * indent, style)] if indent else []
    if shown < total:
        hidden = len(head)
        more = f"▸ {count_of(total - shown, 'more line')}"
        mark = [WrapPiece(more, theme.fold), WrapPiece("", theme.fold, hidden, len(text) - hidden)]
        rows.append(compose([*before, *clipped(mark, width - indent, theme.dim)]))
    return RenderedCell.of_lines(rows)
