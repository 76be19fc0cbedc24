"""Folded cells: a few lines of output, or the first line of a text, and a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.render.lines import RenderedCell, RenderedLine, SourceRun
from antiphon.render.sgr import SgrStyles, state_near
from antiphon.render.status_label import count_of
from antiphon.render.terminal_line import TerminalDecoder
from antiphon.render.wrap import WrapPiece, clipped, compose
from antiphon_kernel.text.lines import line_count


class FoldedOutput:
    """Output of which a few lines are shown, and how many are not."""

    def __init__(
        self, width: int, style: Style, theme: CellTheme, lead: WrapPiece, styles: SgrStyles
    ) -> None:
        """`lead` stands before the first row, and as many spaces before the others."""
        self._width = width
        self._style = style
        self._theme = theme
        self._lead = lead
        self._styles = styles

    def draw(self, text: str, keep: int, *, from_end: bool) -> RenderedCell:
        """The last lines, or the first ones and the last; all if only one would be hidden."""
        total = line_count(text)
        if total <= keep + 1:
            first, last = total, 0
        elif from_end:
            first, last = 0, keep
        else:
            first, last = keep - 1, 1
        rows: list[RenderedLine] = []
        spans = list(_first_lines(text, first))
        start = spans[-1][1] + 1 if spans else 0
        tail = list(_last_lines(text, last))
        for line in spans:
            rows.append(self._row(text, *line, is_first=not rows))
        if tail:
            end = tail[0][0]
            more = (
                f"▸ {count_of(total - first - last, 'earlier line' if from_end else 'more line')}"
            )
            mark = [
                WrapPiece(more, self._theme.fold),
                WrapPiece("", self._theme.fold, start, end - start),
            ]
            rows.append(self._composed(mark, is_first=not rows))
        for line in tail:
            rows.append(self._row(text, *line, is_first=not rows))
        return RenderedCell.of_lines(rows)

    def _row(self, text: str, start: int, end: int, *, is_first: bool) -> RenderedLine:
        """One row of the line from `start` to `end`."""
        end -= text[end - 1 : end] == "\r"
        start, end = _seen(text, start, end)
        raw = text[start:end]
        state = state_near(text, start)
        shown = sanitize_for_display(raw)
        pieces, _ = TerminalDecoder(self._styles).pieces(raw, shown, start, state)
        return self._composed(pieces, is_first=is_first)

    def _composed(self, pieces: list[WrapPiece], *, is_first: bool) -> RenderedLine:
        indent = len(self._lead.text)
        before = self._lead if is_first else WrapPiece(" " * indent, self._style)
        return compose([before, *clipped(pieces, self._width - indent, self._theme.dim)])


def _first_lines(text: str, count: int) -> Iterator[tuple[int, int]]:
    """Start and end of each of the first lines."""
    start = 0
    for _ in range(count):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _last_lines(text: str, count: int) -> Iterator[tuple[int, int]]:
    end = len(text) - text.endswith("\n")
    found = []
    for _ in range(count):
        start = text.rfind("\n", 0, end) + 1
        found.append((start, end))
        end = start - 1
    return reversed(found)


def _seen(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of a long line that its one row is made from."""
    if end - start <= SEEN:
        return start, end
    written_last = text.find("\r", end - SEEN, end) + 1
    return (written_last, end) if written_last else (start, start + SEEN)


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
