"""Frames as an asciicast, version 3: what is written to a terminal so that it shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from antiphon.export.frames import Frame, Look, Row
from antiphon_kernel.text.sanitize import sanitize

PALETTE: Final = (
    "#000000:#cc3333:#33aa33:#bb9922:#3377cc:#aa44aa:#33aaaa:#cccccc"
    ":#666666:#ff6666:#66dd66:#ffdd55:#66aaff:#dd77dd:#66dddd:#ffffff"
)
"""A theme has to say it; every colour of a frame says its own."""

HOLD_MS: Final = 2_000
"""How long the last frame stays."""


def write_cast(
    frames: Sequence[Frame],
    size: tuple[int, int],
    title: str,
    marks: Iterable[tuple[int, str]] = (),
) -> str:
    """Return the cast; it says nothing of when or where it was made.

    Args:
        marks: moments in milliseconds, in order, and their titles.
    """
    page = page_look(frames[0])
    theme = {"fg": page.foreground, "bg": page.background, "palette": PALETTE}
    term = {"cols": size[0], "rows": size[1], "type": "xterm-256color", "theme": theme}
    lines: list[object] = [{"version": 3, "term": term, "title": sanitize(title)}]
    events = [*_outputs(frames), *((at, "m", sanitize(name)) for at, name in marks)]
    # In the end a shell has its cursor again.
    shown = f"\x1b[0m\x1b[{size[1]};{size[0]}H\x1b[?25h"
    events.append((max(at for at, _, _ in events) + HOLD_MS, "o", shown))
    before = 0
    for at, kind, text in sorted(events, key=lambda event: event[0]):
        lines.append([(at - before) / 1000, kind, text])
        before = at
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def page_look(frame: Frame) -> Look:
    """Return the look of most cells."""
    cells = Counter[Look]()
    for row in frame.rows:
        for text, look in row:
            cells[look] += len(text)
    return cells.most_common(1)[0][0]


def _outputs(frames: Sequence[Frame]) -> Iterator[tuple[int, str, str]]:
    shown: tuple[Row, ...] = ((),) * len(frames[0].rows)
    written = "\x1b[?25l\x1b[2J"
    for at, rows in frames:
        for number, (row, before) in enumerate(zip(rows, shown, strict=True), 1):
            if row != before:
                written += _changed(number, row, before)
        yield at, "o", written
        shown, written = rows, ""


def _changed(number: int, row: Row, before: Row) -> str:
    """Write those runs of a row that are not as before."""
    first = 0
    while row[first : first + 1] == before[first : first + 1]:
        first += 1
    last = 0
    while last < len(row) - first and row[-1 - last :] == before[-1 - last :]:
        last += 1
    column = 1 + sum(cell_len(text) for text, _ in row[:first])
    written, look = f"\x1b[{number};{column}H", None
    for text, wanted in row[first : len(row) - last]:
        written += _style(wanted, look) + text
        look = wanted
    return written


def _style(look: Look, before: Look | None) -> str:
    """Return the sequence that sets a look after another one, or after any."""
    codes: list[str] = []
    if before is None or before[2:] != look[2:]:
        codes += ["0", *(code for code, is_on in zip("134", look[2:], strict=True) if is_on)]
        before = None
    for code, name in (("38", "foreground"), ("48", "background")):
        colour: str = getattr(look, name)
        if before is None or getattr(before, name) != colour:
            codes += [code, "2", *(str(one) for one in bytes.fromhex(colour[1:]))]
    return f"\x1b[{';'.join(codes)}m"
