"""Frames as an animated SVG.

Each row of the terminal is a strip of what it has shown, which CSS alone moves: it plays as a
picture too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape

from rich.cells import cell_len

from antiphon.export.cast import HOLD_MS, page_look
from antiphon.export.frames import Frame, Row

CELL_WIDTH: Final = 8.4
CELL_HEIGHT: Final = 18
FONT_SIZE: Final = 14
BASELINE: Final = 13.5
MARGIN: Final = 10
OVERLAP: Final = 0.6
"""Rows reach into the next one: no seam between them at any scale."""
PITCH: Final = CELL_HEIGHT + 4
"""From one picture of a strip to the next: nothing of the neighbours is seen."""

_FONTS: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


def write_svg(frames: Sequence[Frame], size: tuple[int, int]) -> str:
    """Return the picture, which begins again when the last frame has been seen."""
    ground = page_look(frames[0]).bgcolor
    end_ms = frames[-1].at_ms + HOLD_MS
    pictures: dict[Row, int] = {}
    strips = [
        _strip(number, [(at, rows[number]) for at, rows in frames], end_ms, pictures)
        for number in range(size[1])
    ]
    classes: dict[str, int] = {}
    drawn = "\n".join(
        f'<g id="r{number}">{"".join(_draw(row, ground, classes))}</g>'
        for row, number in pictures.items()
    )
    width = round(size[0] * CELL_WIDTH + 2 * MARGIN)
    height = size[1] * CELL_HEIGHT + 2 * MARGIN
    looks = "".join(f".c{number}{{{style}}}" for style, number in classes.items())
    moves = "".join(css for css, _ in strips)
    body = "\n".join(part for _, part in strips)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
text{{font:{FONT_SIZE}px {_FONTS};white-space:pre}}path{{shape-rendering:crispEdges}}
{looks}{moves}
</style>
<defs>
{drawn}
</defs>
<rect width="{width}" height="{height}" rx="6" fill="{ground}"/>
<g transform="translate({MARGIN},{MARGIN})">
{body}
</g>
</svg>
"""


def _strip(
    number: int, shown: Sequence[tuple[int, Row]], end_ms: int, pictures: dict[Row, int]
) -> tuple[str, str]:
    """Return the CSS and the elements of one row of the terminal."""
    moments = [next(group) for _, group in groupby(shown, key=lambda one: one[1])]
    places: dict[Row, int] = {}
    keys = []
    for at, row in moments:
        pictures.setdefault(row, len(pictures))
        place = places.setdefault(row, len(places))
        keys.append(f"{100 * at / end_ms:.3f}%{{transform:translateY(-{place * PITCH}px)}}")
    uses = "".join(
        f'<use href="#r{pictures[row]}" y="{place * PITCH}"/>' for row, place in places.items()
    )
    top = number * CELL_HEIGHT
    clip = f'<svg y="{top}" width="100%" height="{CELL_HEIGHT + OVERLAP}" overflow="hidden">'
    if len(moments) == 1:
        return "", f"{clip}{uses}</svg>"
    css = (
        f"#s{number}{{animation:k{number} {end_ms / 1000:g}s step-end infinite}}"
        f"@keyframes k{number}{{{''.join(keys)}}}"
    )
    return css, f'{clip}<g id="s{number}">{uses}</g></svg>'


def _draw(row: Row, ground: str, classes: dict[str, int]) -> Iterator[str]:
    """Grounds first: no letter is cut by the one beside it."""
    letters, start = "", 0
    for text, look in row:
        cells = cell_len(text)
        if look.bgcolor != ground:
            x, width, height = _x(start), _x(cells), CELL_HEIGHT + OVERLAP
            yield f'<path fill="{look.bgcolor}" d="M{x} 0h{width}v{height}h-{width}z"/>'
        words = text.strip()
        if words:
            style = f"fill:{look.color}"
            style += ";font-weight:bold" if look.bold else ""
            style += ";font-style:italic" if look.italic else ""
            style += ";text-decoration:underline" if look.underline else ""
            name = f"c{classes.setdefault(style, len(classes))}"
            letters += (
                f'<text class="{name}" x="{_x(start + len(text) - len(text.lstrip()))}"'
                f' y="{BASELINE}" textLength="{_x(cell_len(words))}"'
                f' lengthAdjust="spacingAndGlyphs">{escape(words)}</text>'
            )
        start += cells
    yield letters


def _x(cells: int) -> str:
    return f"{cells * CELL_WIDTH:.1f}".removesuffix(".0")
