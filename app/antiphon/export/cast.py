"""Frames as an asciicast, version 3: what is written to a terminal so that it shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from os.path import commonprefix
from typing import Final

from rich.cells import cell_len
from rich.style import Style

from antiphon.export.frames import Frame, Look, Row
from antiphon_kernel.text.sanitize import sanitize

PALETTE: Final = "#000000:#cc3333:#33aa33:#bb9922:#3377cc:#aa44aa:#33aaaa:#cccccc"
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
    theme = {"fg": page.color, "bg": page.bgcolor, "palette": PALETTE}
    term = {"cols": size[0], "rows": size[1], "type": "xterm-256color", "theme": theme}
    lines: list[object] = [{"version": 3, "term": term, "title": sanitize(title)}]
    events = [(at, "m", sanitize(name)) for at, name in marks]
    shown: Sequence[Row] = ((),) * size[1]
    written = "\x1b[?25l\x1b[2J"
    for at, rows in frames:
        for number, (row, before) in enumerate(zip(rows, shown, strict=True), 1):
            if row != before:
                same = len(commonprefix((row, before)))
                column = 1 + sum(cell_len(text) for text, _ in row[:same])
                runs = [Style(**look._asdict()).render(text) for text, look in row[same:]]
                written += f"\x1b[{number};{column}H{''.join(runs)}"
        events.append((at, "o", written))
        shown, written = rows, ""
    # In the end a shell has its cursor again.
    written = f"\x1b[{size[1]};{size[0]}H\x1b[?25h"
    events.append((max(at for at, _, _ in events) + HOLD_MS, "o", written))
    before_ms = 0
    for at, kind, text in sorted(events, key=itemgetter(0)):
        lines.append([(at - before_ms) / 1000, kind, text])
        before_ms = at
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def as_version_2(cast: str) -> str:
    """Return a cast as asciinema 2 and old versions of agg read it: with moments, not intervals."""
    header, *events = map(json.loads, cast.splitlines())
    term, at = header["term"], 0.0
    size = {"width": term["cols"], "height": term["rows"]}
    lines: list[object] = [{"version": 2, **size, "title": header["title"], "theme": term["theme"]}]
    for interval, kind, text in events:
        at = round(at + interval, 3)
        lines.append([at, kind, text])
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def page_look(frame: Frame) -> Look:
    """Return the look of most cells."""
    cells = Counter(look for row in frame.rows for text, look in row for _ in text)
    return cells.most_common(1)[0][0]
