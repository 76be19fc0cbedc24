"""Ranges of a cell's text that are drawn in another style, found line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.style import Style

from antiphon.render.lines import RenderedLine
from antiphon.widgets.editor import StyleSpan


class AuthorRange(NamedTuple):
    """Text from `start` to `end` (exclusive, code points) that belongs to an author."""

    start: int
    end: int
    colour: int
    label: str = ""
    """Stands for the author in the gutter, where it changes."""


class Highlight(NamedTuple):
    """Text from `start` to `end` (exclusive, code points) in a style of its own."""

    start: int
    end: int
    style: Style


class Highlights:
    """Ranges that do not overlap, in order. A line costs what is in it, not what is in the cell."""

    def __init__(self, ranges: Iterable[Highlight]) -> None:
        self._ranges = [one for one in ranges if one.start < one.end]
        self._ends = [one.end for one in self._ranges]

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def between(self, low: int, high: int) -> Iterator[Highlight]:
        """The ranges with text from `low` to `high` (exclusive)."""
        for at in range(bisect_right(self._ends, low), len(self._ranges)):
            if self._ranges[at].start >= high:
                return
            yield self._ranges[at]

    def marks(self, line: RenderedLine) -> list[StyleSpan]:
        """Return the marked spans of a line, by its columns."""
        marks: list[StyleSpan] = []
        for run in line.runs:
            if not run.width:
                continue
            end = run.offset + run.length
            for one in self.between(run.offset, end):
                left = run.column_of(max(one.start, run.offset))
                right = run.column + run.width
                if one.end < end and not run.atomic:
                    right = run.column_of(one.end)
                marks.append(StyleSpan(left, right, one.style))
        return marks


def author_at(tints: Sequence[AuthorRange], line: RenderedLine) -> AuthorRange | None:
    """Return the author range that a line's text begins with."""
    shown = [run.offset for run in line.runs if run.width]
    if not shown:
        return None
    at = bisect_right(tints, shown[0], key=lambda tint: tint.end)
    return tints[at] if at < len(tints) and tints[at].start <= shown[0] else None
