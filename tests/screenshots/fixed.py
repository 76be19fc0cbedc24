"""A clock that goes on only when it is told to, and ids that count."""

from __future__ import annotations

from itertools import count
from typing import Final

NOW_MS: Final = 1_764_000_000_000


class FixedClock:
    """Always the same time of the day; `seconds` have passed since the start."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic(self) -> float:
        return self.seconds


class CountingIds:
    """UUIDv7 of the fixed moment, numbered; client ids, numbered."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def uuid7(self) -> str:
        return f"{NOW_MS:012x}70008{next(self._numbers):015x}"

    def client_id(self) -> int:
        return 1_000 + next(self._numbers)
