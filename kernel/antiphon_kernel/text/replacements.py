"""From replaced ranges of one text to the smallest splices that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon_kernel.text.affixes import common_prefix, common_suffix
from antiphon_kernel.types.records import TextSplice


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
