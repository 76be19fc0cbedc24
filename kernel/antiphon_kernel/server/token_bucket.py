"""Token buckets: how much may be taken at once, and in the long run."""

from __future__ import annotations

import time
from collections.abc import Callable

from antiphon_kernel.types.ids import PrincipalId


class TokenBucket:
    """Fills at a steady rate up to `burst`; what is taken out beyond that has to be waited for."""

    def __init__(self, rate: float, burst: float, monotonic: Callable[[], float]) -> None:
        """`rate` is per second, `burst` is what can be taken at once after a rest."""
        self._rate = rate
        self._burst = burst
        self._monotonic = monotonic
        self._level = burst
        self._at = monotonic()

    @property
    def rest(self) -> float:
        """Seconds in which it fills from nothing."""
        return self._burst / self._rate

    def take(self, amount: float) -> float:
        """Take `amount` out; the seconds to wait before the next taking, 0 if none."""
        now = self._monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate) - amount
        self._at = now
        return max(0.0, -self._level / self._rate)


class Rates:
    """A token bucket for each principal."""

    def __init__(self, rate: float, burst: float) -> None:
        """`rate` is per second, `burst` is what can be taken at once after a rest."""
        self._rate = rate
        self._burst = burst
        self._buckets: dict[PrincipalId, TokenBucket] = {}

    def take(self, principal: PrincipalId) -> float:
        """Take one out; the seconds to wait because of it, 0 if none."""
        bucket = self._buckets.get(principal)
        if bucket is None:
            bucket = self._buckets[principal] = TokenBucket(self._rate, self._burst, time.monotonic)
        return bucket.take(1)

    def give_back(self, principal: PrincipalId) -> None:
        """Undo the last taking."""
        self._buckets[principal].take(-1)
