"""From a text to another text by few splices: what is the same in both is left alone.

A text that is set as a whole keeps its characters, and with them the cursors, the authors and what
others are writing among them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from antiphon_kernel.text.replacements import Replacement, as_splices
from antiphon_kernel.text.sequence_diff import Budget, changed_ranges
from antiphon_kernel.types.records import TextSplice

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_WORD: Final = re.compile(r"[0-9A-Za-z_\u00c0-\u1fff]+|[ \t]+|.", re.DOTALL)


def plan_difference(before: str, after: str) -> list[TextSplice]:
    """The sequential splices that make `before` into `after`."""
    if before == after:
        return []
    effort = Budget()
    pieces: list[Replacement] = []
    for lines in _differences(_LINE, Replacement(0, len(before), after), before, effort):
        pieces += _differences(_WORD, lines, before, effort)
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
