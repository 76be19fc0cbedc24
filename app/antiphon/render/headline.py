"""A folded cell: its first line as it is drawn when open, and how much there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell, RenderedLine, SourceRun

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
