"""Joining many small updates into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pycrdt import merge_updates

FAN_IN: Final = 100
"""How many updates are merged at once: the engine's cost grows with the square of it."""


def merge(updates: Sequence[bytes]) -> bytes:
    """One update that says what all of `updates` (at least one) say."""
    level = list(updates)
    while len(level) > 1:
        level = [
            merge_updates(*group) if len(group) > 1 else group[0]
            for group in (level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN))
        ]
    return level[0]
