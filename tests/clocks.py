"""Time that tests decide."""

from __future__ import annotations


class ManualClock:
    """Time stands still until it is moved."""

    def __init__(self, ms: int = 1_700_000_000_000) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000
