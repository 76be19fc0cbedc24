"""Ids that a seed decides, so that a failing case can be run again."""

from __future__ import annotations

import random


class SeededIds:
    """Ids from a seed: UUIDs in the order of their making, client ids in none."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"ids {seed}")
        self._made = 0

    def uuid7(self) -> str:
        self._made += 1
        tail = self._rng.getrandbits(62)
        return f"{self._made:012x}7{self._rng.getrandbits(12):03x}{0x8000000000000000 | tail:016x}"

    def client_id(self) -> int:
        return self._rng.randint(1, 2**32 - 1)
