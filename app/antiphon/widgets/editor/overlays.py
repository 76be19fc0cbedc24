"""Cursors, selections and names of others, laid over lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.wrap import graphemes

END_CURSOR = "▌"
"""A cursor behind the last character of a line."""

_SHORTEST_TAG = 2


@dataclass(frozen=True, slots=True)
class RemoteCursor:
    """Somebody else's cursor in a text; `anchor` is the other end of their selection."""

    client: int
    principal: str
    username: str
    colour: int
    offset: int
    anchor: int | None = None
    streaming: bool = False
    """A model's append point: it goes along with the text."""


class StyleSpan(NamedTuple):
    """Columns `start` to `end` (exclusive) of a line get a style on top of their own."""

    start: int
    end: int
    style: Style


class CursorLabel(NamedTuple):
    """A cursor at a column and the name of whose it is.

    `name_style` is the style of the name, `style` that of the cursor's own cell.
    """

    column: int
    name: str
    style: Style
    name_style: Style


def styled(strip: Strip, marks: Sequence[StyleSpan]) -> Strip:
    """The line with the marks on it, later ones above earlier ones; columns outside are ignored.

    A character of two cells is marked whole. `Strip.crop` cuts characters that are joined from
    several in two, so this goes by graphemes.
    """
    for start, end, style in marks:
        segments: list[Segment] = []
        column = 0
        for text, own, _ in strip:
            for unit in graphemes(text):
                is_marked = column < end and column + unit.width > start
                shown = style if own is None else own + style
                segments.append(Segment(text[unit.start : unit.end], shown if is_marked else own))
                column += unit.width
        strip = Strip(segments, strip.cell_length).simplify()
    return strip


def first_overflowing(strip: Strip, tags: Sequence[CursorLabel], width: int) -> CursorLabel | None:
    """The first whose name does not fit behind the line: `tagged` would cut it."""
    column = length = strip.cell_length
    for tag in sorted(tags, key=lambda one: one.column < length):
        if tag.column >= length:
            column = max(column, tag.column)
            column += column < width
            gap = 0
        else:
            gap = 0 if column == length and strip.text.endswith(" ") else 1
        if gap + cell_len(tag.name) > width - column:
            return tag
        column += gap + cell_len(tag.name)
    return None


def tagged(
    strip: Strip,
    tags: Sequence[CursorLabel],
    width: int,
    *,
    named_elsewhere: CursorLabel | None = None,
) -> Strip:
    """The line with cursors on it and, behind its end, the names that fit into `width`.

    Of `named_elsewhere`, one of the tags, only the cursor is drawn.
    """
    inside = [tag for tag in tags if tag.column < strip.cell_length]
    behind = [tag for tag in tags if tag.column >= strip.cell_length]
    strip = styled(strip, [StyleSpan(tag.column, tag.column + 1, tag.style) for tag in inside])
    segments = list(strip)
    column = strip.cell_length
    for tag in behind:
        if tag.column > column:
            segments.append(Segment(" " * (tag.column - column)))
            column = tag.column
        if column < width:
            segments.append(Segment(END_CURSOR, tag.name_style))
            column += 1
        if tag is not named_elsewhere:
            column = _add_name(segments, column, width, tag, "")
    for tag in inside:
        if tag is named_elsewhere:
            continue
        gap = "" if segments[-1].text.endswith(" ") else " "
        column = _add_name(segments, column, width, tag, gap)
    return Strip(segments, column)


def _add_name(segments: list[Segment], column: int, width: int, tag: CursorLabel, gap: str) -> int:
    room = width - column - len(gap)
    if room < _SHORTEST_TAG:
        return column
    name, size = tag.name, cell_len(tag.name)
    if size > room:
        name, size = f"{set_cell_size(name, room - 1)}…", room
    segments.append(Segment(gap + name, tag.name_style))
    return column + len(gap) + size
