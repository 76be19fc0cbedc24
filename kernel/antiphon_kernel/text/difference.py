"""From a text to another text by few splices: what is the same in both is left alone.

A text that is set as a whole keeps its characters, and with them the cursors, the authors and what
others are writing among them.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final

from antiphon_kernel.text.pieces import Piece, as_splices
from antiphon_kernel.types.records import TextSplice

_MANY_LINES: Final = 1_000

_CLOSE_LOOK: Final = 400
"""Changed ranges up to so many code points are compared character by character."""


def plan_difference(before: str, after: str) -> list[TextSplice]:
    """The sequential splices that make `before` into `after`."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    pieces: list[Piece] = []
    offsets = [0]
    for line in old:
        offsets.append(offsets[-1] + len(line))
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    # Without leaving out lines that are everywhere, comparing takes the square of their number.
    middle = SequenceMatcher(None, old, new, autojunk=len(old) > _MANY_LINES)
    for tag, i, j, k, m in middle.get_opcodes():
        if tag != "equal":
            start = offsets[head + i]
            text = "".join(new[k:m])
            pieces += _closer(before[start : offsets[head + j]], text, start)
    return as_splices(before, pieces)


def _common(one: list[str], other: list[str]) -> int:
    """How many lines two texts begin with in common."""
    count = 0
    for this, that in zip(one, other, strict=False):
        if this != that:
            break
        count += 1
    return count


def _closer(before: str, after: str, start: int) -> list[Piece]:
    """The changes inside one changed range."""
    if not before or not after or max(len(before), len(after)) > _CLOSE_LOOK:
        return [Piece(start, start + len(before), after)]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        Piece(start + i, start + j, after[k:m])
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    ]
