"""Folded cells: the first lines of a text, or its first line as it is drawn open, and a count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import RenderedCell, RenderedLine, SourceRun
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


SEEN: Final = 2_000
"""Code points from the start of a text in which its first line is looked for."""

_MARK: Final = "▸ "
_SHORTEST: Final = 8
"""Columns of text below which nothing is said behind it."""


def summary(
    opened: RenderedCell, length: int, words: Iterable[str], width: int, theme: CellTheme
) -> RenderedCell:
    """One line for a text of `length` code points, of which `opened` shows the start.

    `words` stand behind it, where there is room for them.
    """
    drawn = (one for one in opened.lines if one.text.strip())
    line = next(drawn, RenderedLine(Strip([])))
    behind = "".join(f" · {word}" for word in words)
    room = width - len(_MARK) - cell_len(behind)
    if room < _SHORTEST:
        behind, room = "", max(width - len(_MARK), 0)
    end = cell_len(line.text.rstrip())
    ellipsis = ""
    if end > room or (not behind and next(drawn, None) is not None):
        end, ellipsis = max(min(end, room - 1), 0), "…"
    segments = [Segment(_MARK, theme.fold), *line.strip.crop(0, end)]
    segments += [Segment(ellipsis, theme.dim), Segment(behind, theme.fold)]
    strip = Strip([one for one in segments if one.text])
    runs = [
        run._replace(column=run.column + len(_MARK))
        for run in line.runs
        if run.column + run.width <= end
    ]
    hidden = max((run.offset + run.length for run in runs), default=0)
    if hidden < length or not runs:
        runs.append(SourceRun(len(_MARK) + end, 0, hidden, length - hidden, True))
    return RenderedCell.of_lines([RenderedLine(strip, tuple(runs))])
