"""`make animation`: records the demo's first minute and draws it as an animated SVG.

Each row of the terminal is a strip of what it has shown, which CSS alone moves: it plays as a
picture too.

python -m tests.screenshots.animation [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import pyte

from tests.e2e.terminal import UNKNOWN
from tests.screenshots.__main__ import FOLDER
from tests.screenshots.recording import Cast, record_demo

CELL_WIDTH: Final = 8.4
CELL_HEIGHT: Final = 18
FONT_SIZE: Final = 14
BASELINE: Final = 13.5
MARGIN: Final = 10
OVERLAP: Final = 0.6
"""Rows reach into the next one: no seam between them at any scale."""
PITCH: Final = CELL_HEIGHT + 4
"""From one picture of a strip to the next: nothing of the neighbours is seen."""

HOLD_SECONDS: Final = 3.0
"""How long the last picture stays."""

FOREGROUND: Final = "#d6dae2"
BACKGROUND: Final = "#14171d"

_FONTS: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


@dataclass(frozen=True, slots=True)
class Look:
    """Colours and letters of some cells of the terminal."""

    colour: str
    ground: str
    is_bold: bool
    is_italic: bool
    is_underlined: bool


Row = tuple[tuple[Look, int, str], ...]
"""Runs of equal look: where each begins and its text."""


def frames(cast: Cast) -> Iterator[tuple[float, tuple[Row, ...]]]:
    """Yield what the terminal shows, and since when."""
    screen = pyte.Screen(cast.cols, cast.rows)
    stream = pyte.ByteStream(screen)
    rows: list[Row] = [()] * cast.rows
    for at, text in cast.events:
        screen.dirty.clear()
        stream.feed(UNKNOWN.sub(b"", text.encode()))
        for number in screen.dirty:
            rows[number] = _row(screen, number)
        yield at, tuple(rows)


def animation(cast: Cast) -> str:
    """Return the SVG."""
    shown = list(frames(cast))
    seconds = shown[-1][0] + HOLD_SECONDS
    pictures: dict[Row, int] = {}
    strips = [
        _strip(number, [(at, rows[number]) for at, rows in shown], seconds, pictures)
        for number in range(cast.rows)
    ]
    classes: dict[str, int] = {}
    drawn = "\n".join(
        f'<g id="r{number}">{"".join(_draw(row, classes))}</g>' for row, number in pictures.items()
    )
    return _document(cast, drawn, strips, classes)


def _document(
    cast: Cast, drawn: str, strips: Sequence[tuple[str, str]], classes: dict[str, int]
) -> str:
    width = round(cast.cols * CELL_WIDTH + 2 * MARGIN)
    height = cast.rows * CELL_HEIGHT + 2 * MARGIN
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
<rect width="{width}" height="{height}" rx="6" fill="{BACKGROUND}"/>
<g transform="translate({MARGIN},{MARGIN})">
{body}
</g>
</svg>
"""


def _strip(
    number: int, shown: Sequence[tuple[float, Row]], seconds: float, pictures: dict[Row, int]
) -> tuple[str, str]:
    """Return the CSS and the elements of one row of the terminal."""
    moments = [next(group) for _, group in groupby(shown, key=lambda one: one[1])]
    places: dict[Row, int] = {}
    keys = []
    for at, row in moments:
        pictures.setdefault(row, len(pictures))
        place = places.setdefault(row, len(places))
        keys.append(f"{100 * at / seconds:.2f}%{{transform:translateY(-{place * PITCH}px)}}")
    uses = "".join(
        f'<use href="#r{pictures[row]}" y="{place * PITCH}"/>'
        for row, place in places.items()
        if row
    )
    top = number * CELL_HEIGHT
    clip = f'<svg y="{top}" width="100%" height="{CELL_HEIGHT + OVERLAP}" overflow="hidden">'
    if len(moments) == 1:
        return "", f"{clip}{uses}</svg>"
    css = (
        f"#s{number}{{animation:k{number} {seconds:g}s step-end infinite}}"
        f"@keyframes k{number}{{{''.join(keys)}}}"
    )
    return css, f'{clip}<g id="s{number}">{uses}</g></svg>'


def _draw(row: Row, classes: dict[str, int]) -> Iterator[str]:
    """Grounds first: no letter is cut by the one beside it."""
    for look, start, text in row:
        if look.ground != BACKGROUND:
            x, width, height = _x(start), _x(len(text)), CELL_HEIGHT + OVERLAP
            yield f'<path fill="{look.ground}" d="M{x} 0h{width}v{height}h-{width}z"/>'
    for look, start, text in row:
        if not text.strip():
            continue
        first = len(text) - len(text.lstrip())
        words = text.strip()
        style = f"fill:{look.colour}"
        style += ";font-weight:bold" if look.is_bold else ""
        style += ";font-style:italic" if look.is_italic else ""
        style += ";text-decoration:underline" if look.is_underlined else ""
        name = f"c{classes.setdefault(style, len(classes))}"
        yield (
            f'<text class="{name}" x="{_x(start + first)}" y="{BASELINE}"'
            f' textLength="{_x(len(words))}" lengthAdjust="spacingAndGlyphs">'
            f"{escape(words)}</text>"
        )


def _x(cells: int) -> str:
    return f"{cells * CELL_WIDTH:.1f}".removesuffix(".0")


def _row(screen: pyte.Screen, number: int) -> Row:
    cells = [screen.buffer[number][column] for column in range(screen.columns)]
    runs: list[tuple[Look, int, str]] = []
    start = 0
    for look, group in groupby(cells, key=_look):
        text = "".join(cell.data or " " for cell in group)
        if look.ground != BACKGROUND or text.strip():
            runs.append((look, start, text))
        start += len(text)
    return tuple(runs)


def _look(cell: pyte.screens.Char) -> Look:
    colour, ground = _colour(cell.fg, FOREGROUND), _colour(cell.bg, BACKGROUND)
    if cell.reverse:
        colour, ground = ground, colour
    # What cannot be seen makes no difference.
    visible = cell.data.strip() != ""
    return Look(
        colour if visible or cell.underscore else FOREGROUND,
        ground,
        visible and cell.bold,
        visible and cell.italics,
        cell.underscore,
    )


def _colour(name: str, default: str) -> str:
    return default if name == "default" else f"#{name}"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(exist_ok=True)
    cast = record_demo()
    (folder / "demo.cast").write_text(cast.dumps())
    (folder / "demo.svg").write_text(animation(cast))


if __name__ == "__main__":
    main()
