"""Frames as an animated SVG.

Each row of the terminal is a reference, which SMIL alone moves from one drawing of a row to the
next: it plays as a picture too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
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

_FONTS: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


def write_svg(frames: Sequence[Frame], size: tuple[int, int]) -> str:
    """Return the picture, which begins again when the last frame has been seen."""
    ground = page_look(frames[0]).bgcolor
    end_ms = frames[-1].at_ms + HOLD_MS
    numbers: dict[Row, int] = {}
    body = ""
    for place in range(size[1]):
        shown = ((at, rows[place]) for at, rows in frames)
        moments = [next(group) for _, group in groupby(shown, key=itemgetter(1))]
        names = [f"#r{numbers.setdefault(row, len(numbers))}" for _, row in moments]
        times = ";".join(f"{at / end_ms:.6g}" for at, _ in moments)
        body += f"""<use href="{names[0]}" y="{place * CELL_HEIGHT}"><animate attributeName="href" \
calcMode="discrete" dur="{end_ms}ms" repeatCount="indefinite" values="{";".join(names)}" \
keyTimes="{times}"/></use>
"""
    drawn = "\n".join(
        f'<g id="r{number}">{"".join(_draw(row, ground))}</g>' for row, number in numbers.items()
    )
    width = round(size[0] * CELL_WIDTH + 2 * MARGIN)
    height = size[1] * CELL_HEIGHT + 2 * MARGIN
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
svg{{font:{FONT_SIZE}px {_FONTS};white-space:pre}}path{{shape-rendering:crispEdges}}
</style>
<defs>
{drawn}
</defs>
<rect width="{width}" height="{height}" rx="6" fill="{ground}"/>
<g transform="translate({MARGIN},{MARGIN})">
{body}</g>
</svg>
"""


def _draw(row: Row, ground: str) -> Iterator[str]:
    """Grounds first: no letter is cut by the one beside it."""
    letters, start = "", 0
    for text, look in row:
        cells = cell_len(text)
        if look.bgcolor != ground:
            width, height = f"{cells * CELL_WIDTH:g}", CELL_HEIGHT + OVERLAP
            place = f"M{start * CELL_WIDTH:g} 0h{width}v{height}h-{width}z"
            yield f'<path fill="{look.bgcolor}" d="{place}"/>'
        words = text.strip()
        if words:
            x = (start + len(text) - len(text.lstrip())) * CELL_WIDTH
            style = f'fill="{look.color}"'
            style += ' font-weight="bold"' if look.bold else ""
            style += ' font-style="italic"' if look.italic else ""
            style += ' text-decoration="underline"' if look.underline else ""
            letters += (
                f'<text {style} x="{x:g}" y="{BASELINE}" lengthAdjust="spacingAndGlyphs"'
                f' textLength="{cell_len(words) * CELL_WIDTH:g}">{escape(words)}</text>'
            )
        start += cells
    yield letters
