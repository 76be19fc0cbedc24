"""Tables: columns as wide as they need and as there is room for, in which cells are wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.style import Style

from antiphon.render.canvas import Canvas
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.markdown_inline import InlineSource, inline_rows
from antiphon.render.wrap import WrapPiece, wrap

if TYPE_CHECKING:
    from markdown_it.token import Token

_SEPARATOR: Final = " │ "
_NARROWEST: Final = 3


def draw_table(
    tokens: Sequence[Token],
    source: SourceLines,
    base: int,
    canvas: Canvas,
    style: Style,
    theme: CellTheme,
) -> None:
    """Draw the tokens of one table; the offsets of its pieces count from `base`."""
    rows: list[list[list[WrapPiece]]] = []
    aligns: list[str] = []
    column = 0
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
            column = 0
        elif token.type == "th_open":
            aligns.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
        elif token.type == "inline":
            line = (token.map or (0, 0))[0]
            parts, column = _locate(token.content, source.lines[line], column)
            start = source.starts[line] - base
            inline = InlineSource(token.content, [(at, start + place) for at, place in parts])
            head = theme.table_head if len(rows) == 1 else Style.null()
            pieces = inline_rows(token.children or [], inline, style + head, theme)
            rows[-1].append([piece for row in pieces for piece in row])
    widths = _fit([_width_of(column) for column in zip(*rows, strict=False)], canvas.wide_room)
    for number, row in enumerate(rows):
        for drawn in _lines(row, widths, aligns, style, theme):
            canvas.row(drawn)
        if number == 0:
            rule = "─┼─".join("─" * width for width in widths)
            canvas.row([WrapPiece(rule, theme.marker)])


def _locate(content: str, line: str, start: int) -> tuple[list[tuple[int, int]], int]:
    r"""Parts of a cell's content in its source line, and where the next cell starts.

    A pipe in the content is written ``\|``, which makes a new part.
    """
    place = _find(content, line, start) if content else -1
    if place < 0:
        return [(0, min(start, len(line)))], start
    parts = [(0, place)]
    for at, character in enumerate(content):
        if line[place] != character:
            place += 1
            parts.append((at, place))
        place += 1
    pipe = line.find("|", place)
    return parts, pipe + 1 if pipe >= 0 else len(line)


def _find(content: str, line: str, start: int) -> int:
    if "|" not in content:
        return line.find(content, start)
    pattern = re.escape(content).replace(r"\|", r"\\?\|")
    found = re.compile(pattern).search(line, start)
    return found.start() if found else -1


def _width_of(column: Sequence[Sequence[WrapPiece]]) -> int:
    return max(sum(cell_len(piece.text) for piece in cell) for cell in column)


def _fit(widths: list[int], room: int) -> list[int]:
    """Narrow the widest columns until the table fits; columns that cannot show are left out."""
    widths = [max(width, 1) for width in widths]
    while len(widths) > 1 and len(widths) * (_NARROWEST + len(_SEPARATOR)) > room + len(_SEPARATOR):
        widths.pop()
    space = room - len(_SEPARATOR) * (len(widths) - 1)
    while sum(widths) > space and max(widths) > 1:
        widest = max(widths)
        others = [width for width in widths if width < widest]
        count = len(widths) - len(others)
        surplus = sum(widths) - space
        step = max(1, min(surplus // count, widest - max(others, default=1)))
        for index, width in enumerate(widths):
            if width == widest and surplus > 0:
                widths[index] -= step
                surplus -= step
    return widths


def _lines(
    cells: Sequence[Sequence[WrapPiece]],
    widths: Sequence[int],
    aligns: Sequence[str],
    style: Style,
    theme: CellTheme,
) -> Iterator[list[WrapPiece]]:
    """Yield the lines of one row: as many as its longest cell needs."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=False)]
    for parts in zip_longest(*wrapped, fillvalue=()):
        line: list[WrapPiece] = []
        for number, (part, width, align) in enumerate(zip(parts, widths, aligns, strict=False)):
            if number:
                line.append(WrapPiece(_SEPARATOR, theme.marker))
            missing = width - sum(cell_len(piece.text) for piece in part)
            left = missing if align == "right" else missing // 2 if align == "center" else 0
            line.append(WrapPiece(" " * left, style))
            line.extend(part)
            line.append(WrapPiece(" " * (missing - left), style))
        yield line
