"""Rate limits of connections, principals and wrong tokens; pauses where a pause collects."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from antiphon_kernel.server.limits import ServerLimits


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
    """A token bucket for each principal or address."""

    def __init__(
        self,
        rate: float,
        burst: float,
        monotonic: Callable[[], float] = time.monotonic,
        most: float = math.inf,
    ) -> None:
        """
        Args:
            rate: per second.
            burst: what can be taken at once after a rest.
            most: of how many it knows; whoever was quiet longest is forgotten first.
        """
        self._make = partial(TokenBucket, rate, burst, monotonic)
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, key: str, patience: float = math.inf) -> float | None:
        """Take one out; the seconds to wait because of it, 0 if none.

        None if they would be more than `patience`: nothing is taken then.
        """
        bucket = self._buckets.pop(key, None) or self._make()
        self._buckets[key] = bucket
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        delay = bucket.take(1)
        if delay > patience:
            bucket.take(-1)
            return None
        return delay


BURST: Final = 10
"""Wrong tokens that are answered one by one, from one address."""

SECONDS_EACH: Final = 6.0
"""Seconds after which one more is answered."""

ADDRESSES: Final = 1_000
"""How many addresses are remembered."""


class RateLimiter:
    """The messages and bytes of one connection.

    Who writes faster than the buckets fill is read more slowly, so that the others stay
    responsive; who goes on like that for too long has to be told to stop.
    """

    def __init__(
        self, limits: ServerLimits, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._messages = TokenBucket(limits.messages_per_second, limits.messages_at_once, monotonic)
        self._data = TokenBucket(limits.bytes_per_second, limits.bytes_at_once, monotonic)
        self._patience = limits.overload_grace
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


_TRIAL: Final = 8
"""Batches of one in quick succession before it is tried whether a pause collects more."""

_LAST_TRIAL: Final = 1_024
"""The most batches between two trials."""


@dataclass(eq=False)
class BatchPause:
    """Decides how long to wait after a batch, from what the pauses before have collected.

    Work on several things together costs little more than on one, so under a steady stream a pause
    saves most of it. Somebody who waits for the outcome of each thing sends nothing meanwhile: a
    pause would only make them slower. Which of the two it is shows in what a pause brings, and so
    does how long one has to be: whoever sends much at once is not kept waiting when it is here.
    """

    length: float
    """Seconds of the longest pause."""
    enough: int
    """Things in a batch from which on there is no pause."""
    clock: Callable[[], float]
    """Monotonic time in seconds."""
    _last: float = float("-inf")
    _has_waited: bool = False
    _quick: int = 0
    _wanted: int = _TRIAL

    def __post_init__(self) -> None:
        self._pause = self.length

    def after(self, size: int) -> float:
        """Return the seconds to wait after a batch of `size` things; 0 for none."""
        now = self.clock()
        is_quick = now - self._last < self.length
        self._last = now
        waited = self._pause if self._has_waited else 0.0
        if waited:
            self._pause = min(self.length, waited * self.enough / size)
        if size > 1:
            self._quick, self._wanted = 0, _TRIAL
            self._has_waited = size < self.enough
        elif not waited:
            self._quick = self._quick + 1 if is_quick else 0
            self._has_waited = self._quick >= self._wanted
        elif waited == self.length:  # a shorter pause says nothing
            self._has_waited = False
            self._quick, self._wanted = 0, min(2 * self._wanted, _LAST_TRIAL)
        return self._pause if self._has_waited else 0.0
