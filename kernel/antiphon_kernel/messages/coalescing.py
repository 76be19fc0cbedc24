"""Coalescing: texts of one message that follow each other are sent as one text.

Neighbours of one role are one message already, so what a model sees of two texts depends neither
on the message that each was written in nor on the service that the model is asked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, TypeVar, cast

JOIN: Final = " "
"""Between two texts that become one."""

_Part = TypeVar("_Part")


def coalesce(parts: Sequence[_Part], join: str = JOIN, *, in_pieces: bool = False) -> list[_Part]:
    """Return the parts of a message with strings in a row as one; all else stays, and apart.

    Args:
        in_pieces: leave each string a part of its own, with the join at its beginning, so that no
            part changes with what follows it.
    """
    if len(parts) < 2:
        return list(parts)
    merged: list[_Part] = []
    for is_text, run in groupby(parts, lambda part: isinstance(part, str)):
        if not is_text:
            merged.extend(run)
            continue
        first, *others = cast(Iterable[str], run)
        pieces = [first, *(join + text for text in others)]
        merged += cast(list[_Part], pieces if in_pieces else ["".join(pieces)])
    return merged
