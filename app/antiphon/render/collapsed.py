"""Folded cells: a few lines of output, or the first line of a text, and a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.render.lines import RenderedCell, RenderedLine, SourceRun
from antiphon.render.terminal_output import SgrStyles, TerminalDecoder, state_near
from antiphon.render.wrap import WrapPiece, clipped, compose
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.quoting import count_of


def folded_output(
    text: str,
    keep: int,
    width: int,
    theme: CellTheme,
    lead: WrapPiece,
    styles: SgrStyles,
    *,
    from_end: bool,
) -> RenderedCell:
    """The last lines, or the first ones and the last; all if only one would be hidden.

    `lead` stands before the first row, and as many spaces before the others.
    """
    total = line_count(text)
    if total <= keep + 1:
        first, last = total, 0
    elif from_end:
        first, last = 0, keep
    else:
        first, last = keep - 1, 1
    spans, tail = list(_first_lines(text, first)), list(_last_lines(text, last))
    rows = [_output_row(text, *line, styles) for line in spans]
    if tail:
        start, end = spans[-1][1] + 1 if spans else 0, tail[0][0]
        more = f"▸ {count_of(total - first - last, 'earlier line' if from_end else 'more line')}"
        hidden = WrapPiece("", theme.fold, start, end - start)
        rows.append([WrapPiece(more, theme.fold), hidden])
    rows += [_output_row(text, *line, styles) for line in tail]
    indent = len(lead.text)
    before = [lead, *[WrapPiece(" " * indent, theme.dim)] * len(rows)]
    return RenderedCell.of_lines(
        [
            compose([first_piece, *clipped(pieces, width - indent, theme.dim)])
            for first_piece, pieces in zip(before, rows, strict=False)
        ]
    )


def _output_row(text: str, start: int, end: int, styles: SgrStyles) -> list[WrapPiece]:
    """Return the pieces of the line from `start` to `end`, of which one row is made."""
    end -= text[end - 1 : end] == "\r"
    start, end = _seen(text, start, end)
    raw = text[start:end]
    shown = sanitize_for_display(raw)
    return TerminalDecoder(styles).pieces(raw, shown, start, state_near(text, start))[0]


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
