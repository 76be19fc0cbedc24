"""Rate limit on wrong tokens. Right tokens are never counted."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from antiphon_kernel.server.token_bucket import TokenBucket
from antiphon_kernel.types.clock import Clock

BURST: Final = 10
"""Wrong tokens that are answered one by one, from one address."""

SECONDS_EACH: Final = 6.0
"""Seconds after which one more is answered."""

ADDRESSES: Final = 1_000
"""How many addresses are remembered; the one that was quiet longest is forgotten first."""


class AuthRateLimit:
    """A token bucket for each address, from which every wrong token takes one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def too_many(self, address: str) -> bool:
        """Record one more from `address`; return whether there are more than are answered."""
        bucket = self._buckets.pop(address, None)
        if bucket is None:
            bucket = TokenBucket(1 / SECONDS_EACH, BURST, self._clock.monotonic)
        self._buckets[address] = bucket
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        if bucket.take(1) > 0:
            bucket.take(-1)
            return True
        return False
