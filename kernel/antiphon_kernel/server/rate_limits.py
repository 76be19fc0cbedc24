"""Rate limits: of what a connection and a principal send, and of wrong tokens."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from antiphon_kernel.types.clock import Clock
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

    def take(self, amount: float, now: float | None = None) -> float:
        """Take `amount` out; the seconds to wait before the next taking, 0 if none.

        Args:
            now: the monotonic time, if the caller knows it already.
        """
        now = self._monotonic() if now is None else now
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


class RateLimiter:
    """The messages and bytes of one connection.

    Who writes faster than the buckets fill is read more slowly, so that the others stay
    responsive; who goes on like that for `patience` seconds has to be told to stop.
    """

    def __init__(
        self,
        messages: TokenBucket,
        data: TokenBucket,
        patience: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._messages = messages
        self._data = data
        self._patience = patience
        self._monotonic = monotonic
        self._hurried_since: float | None = None
        self._rested_at = 0.0
        """From when on a message that need not wait is one after a pause."""

    def received(self, size: int, messages: int = 1) -> float:
        """Messages of `size` bytes came; the seconds to wait before the next is read."""
        now = self._monotonic()
        delay, rest = self._messages.take(messages, now), self._messages.rest
        if (of_data := self._data.take(size, now)) > delay:
            delay, rest = of_data, self._data.rest
        if delay > 0:
            # A busy kernel that reads a little later than it could does not make it a pause.
            self._rested_at = now + delay + rest
            if self._hurried_since is None:
                self._hurried_since = now
        elif now >= self._rested_at:
            self._hurried_since = None
        return delay

    def sent(self, size: int) -> None:
        """The client had so many bytes made for it alone: they count like its own."""
        self._data.take(size)

    @property
    def exhausted(self) -> bool:
        """Return whether the client has been too fast for too long."""
        since = self._hurried_since
        return since is not None and self._monotonic() - since > self._patience
