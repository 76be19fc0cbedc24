"""Anchor that keeps the view still: a line of a cell and the screen row it stays on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from antiphon_kernel.document.changes import TextChange
from antiphon_kernel.text.transform import shift_through

HEADER_LINE = -1
"""The line of a cell right above its first one: its author's name, or a blank."""

TOP_LINE = -2
"""No line of a cell is above this one, which is a blank above the author's name."""


class LineRef(NamedTuple):
    """A line of a cell."""

    block: str
    line: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """This line of this cell is drawn on this row of the view, whatever changes around it.

    `offset` is a code point that the line shows, if it shows text: it finds the line again when the
    cell itself has changed. The row may be outside the view.
    """

    block: str
    line: int
    row: int
    offset: int | None = None

    def carried(self, texts: Iterable[TextChange]) -> Anchor:
        """Return the anchor with its text, after changes that may concern it."""
        offset = self.offset
        for text in texts:
            if offset is not None and text.block == self.block:
                offset = shift_through(offset, text.splices, stick="left")
        return self if offset == self.offset else replace(self, offset=offset)
