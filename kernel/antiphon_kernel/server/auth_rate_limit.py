"""Rate limit on wrong tokens. Right tokens are never counted."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.clock import Clock

BURST: Final = 10
"""Wrong tokens that are answered one by one, from one address."""

SECONDS_EACH: Final = 6.0
"""After so long one more is."""

ADDRESSES: Final = 1_000
"""How many addresses are remembered; the one that was quiet longest is forgotten first."""


@dataclass(slots=True)
class _AddressBucket:
    left: float
    at: float


class AuthRateLimit:
    """A bucket for each address: every wrong token takes one out, time puts one back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, _AddressBucket] = OrderedDict()

    def too_many(self, address: str) -> bool:
        """Take note of one more from `address`; whether those are more than are answered."""
        now = self._clock.monotonic()
        bucket = self._buckets.pop(address, None) or _AddressBucket(BURST, now)
        bucket.left = min(BURST, bucket.left + (now - bucket.at) / SECONDS_EACH)
        bucket.at = now
        self._buckets[address] = bucket
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        if bucket.left < 1:
            return True
        bucket.left -= 1
        return False
