"""Shift of an offset when the text around it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from antiphon_kernel.types.records import TextSplice


def shift_offset(offset: int, splice: TextSplice, *, stick: Literal["left", "right"]) -> int:
    """Return the cursor `offset` after `splice`: between the same code points, if they remain.

    `stick` decides what the code points leave open: text that is inserted exactly at the cursor,
    or that replaces a range with the cursor strictly inside, ends up right of a cursor that
    sticks "left" (a person's) and left of one that sticks "right" (a model's). At the edges of a
    replaced range the cursor stays at that edge.
    """
    start, end = splice.offset, splice.offset + splice.deleted
    grown = len(splice.inserted)
    inside = start < offset < end
    if inside or start == offset == end:
        return start if stick == "left" else start + grown
    if offset <= start:
        return offset
    return offset - splice.deleted + grown


def shift_through(
    offset: int, splices: Iterable[TextSplice], *, stick: Literal["left", "right"]
) -> int:
    """Return the cursor `offset` after sequential splices, as `shift_offset` does after one."""
    for splice in splices:
        offset = shift_offset(offset, splice, stick=stick)
    return offset
