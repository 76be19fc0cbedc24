"""From a text to another text, or from replaced ranges, to few splices: equal text is left alone.

A text that is set as a whole keeps its characters, and with them the cursors, the authors and what
others are writing among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from antiphon_kernel.text.sequence_diff import Budget, changed_ranges
from antiphon_kernel.types.records import TextSplice

LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
"""A line with its newline; the last line of a text may have none."""

WORD: Final = re.compile(r"[0-9A-Za-z_\u00c0-\u1fff]+|[ \t]+|.", re.DOTALL)
"""A word, blanks, or one other code point: what changes as a whole inside a line."""


def common_prefix(first: str, second: str) -> int:
    """Return the length of the common prefix in code points.

    Compares slices by halves: the loop runs in C, and few times.
    """
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(first: str, second: str, prefix: int) -> int:
    """Return the common suffix's length in code points, behind a common start of `prefix`."""
    low, high = 0, min(len(first), len(second)) - prefix
    while low < high:
        middle = (low + high + 1) // 2
        if (
            first[len(first) - middle : len(first) - low]
            == (second[len(second) - middle : len(second) - low])
        ):
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class Replacement:
    """Code points `start` to `end` of the text before become `text`."""

    start: int
    end: int
    text: str


def as_splices(text: str, pieces: Sequence[Replacement]) -> list[TextSplice]:
    """The splices that carry out `pieces` (sorted and disjoint), each without common ends.

    Pieces that touch become one. Each offset counts in the text as the earlier splices left it.
    """
    joined: list[Replacement] = []
    for piece in pieces:
        _trim(text, piece)
        if joined and joined[-1].end == piece.start:
            joined[-1].end = piece.end
            joined[-1].text += piece.text
        else:
            joined.append(piece)
    splices = []
    drift = 0
    for piece in joined:
        _trim(text, piece)
        deleted = piece.end - piece.start
        if deleted or piece.text:
            splices.append(TextSplice(piece.start + drift, deleted, piece.text))
            drift += len(piece.text) - deleted
    return splices


def _trim(text: str, piece: Replacement) -> None:
    """Leave the code points alone that are the same before and after, at both ends."""
    before, after = text[piece.start : piece.end], piece.text
    head = common_prefix(before, after)
    tail = common_suffix(before, after, head)
    piece.start += head
    piece.end -= tail
    piece.text = after[head : len(after) - tail]


def apply_splices(text: str, splices: Iterable[TextSplice]) -> str:
    """Return what sequential splices make of a text."""
    for one in splices:
        text = text[: one.offset] + one.inserted + text[one.offset + one.deleted :]
    return text


def as_script(splices: Iterable[TextSplice]) -> list[TextSplice]:
    """Sequential splices of rising places as a script: each offset counts in the text before."""
    script = []
    drift = 0
    for one in splices:
        script.append(TextSplice(one.offset - drift, one.deleted, one.inserted))
        drift += len(one.inserted) - one.deleted
    return script


def apply_script(text: str, script: Iterable[TextSplice]) -> str:
    """Return what the splices of a script make of a text."""
    parts: list[str] = []
    at = 0
    for one in script:
        parts += text[at : one.offset], one.inserted
        at = one.offset + one.deleted
    return "".join([*parts, text[at:]])


def plan_difference(before: str, after: str) -> list[TextSplice]:
    """The sequential splices that make `before` into `after`."""
    if before == after:
        return []
    effort = Budget()
    pieces: list[Replacement] = []
    for lines in _differences(LINE, Replacement(0, len(before), after), before, effort):
        pieces += _differences(WORD, lines, before, effort)
    return as_splices(before, pieces)


def _differences(
    unit: re.Pattern[str], piece: Replacement, before: str, effort: Budget
) -> list[Replacement]:
    """A replaced range of `before`, as replaced ranges of whole units."""
    if piece.start == piece.end or not piece.text:
        return [piece]
    old = unit.findall(before, piece.start, piece.end)
    new = unit.findall(piece.text)
    starts, new_starts = _starts(old), _starts(new)
    return [
        Replacement(
            piece.start + starts[one.start],
            piece.start + starts[one.end],
            piece.text[new_starts[one.new_start] : new_starts[one.new_end]],
        )
        for one in changed_ranges(old, new, effort)
    ]


def _starts(units: Sequence[str]) -> list[int]:
    return list(accumulate(map(len, units), initial=0))
