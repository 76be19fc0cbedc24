"""Screens as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.style import Style
from textual.strip import Strip


def styled_text(*screens: Sequence[Strip]) -> str:
    """Return screens of the same text as that text, and what each part of it looks like on each.

    Below each row are its parts, as the name of a look and its columns, and how many such rows
    there are; at the end are the looks, each with its style on every screen.
    """
    looks: dict[tuple[str, ...], str] = {}

    def shown(rows: Sequence[Strip]) -> str:
        (row,) = {row.text for row in rows}
        parts = groupby(zip(*map(_styles_of, rows), strict=True))
        named = ((looks.setdefault(look, _name(len(looks))), len(list(run))) for look, run in parts)
        return f"|{row}|\n{' '.join(f'{name}{columns}' for name, columns in named)}"

    lines = []
    for row, same in groupby(map(shown, zip(*screens, strict=True))):
        count = len(list(same))
        lines.append(row if count == 1 else f"{row} ×{count}")
    for look, name in looks.items():
        lines += [f"{name:3} {style}" for style in look]
    return "\n".join(lines)


def _styles_of(row: Strip) -> Iterator[str]:
    """Yield the style of each column."""
    for segment in row:
        style = segment.style or Style()
        for _ in range(segment.cell_length):
            yield str(style)


def _name(number: int) -> str:
    """Return a, b, … z, ba, bb, …"""
    letters = ""
    while number or not letters:
        number, last = divmod(number, 26)
        letters = chr(ord("a") + last) + letters
    return letters
