"""Write rate limit of one connection."""

from __future__ import annotations

from collections.abc import Callable

from antiphon_kernel.server.token_bucket import TokenBucket


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

    def received(self, size: int) -> float:
        """A message of `size` bytes came; the seconds to wait before the next is read."""
        delay, rest = max(
            (self._messages.take(1), self._messages.rest), (self._data.take(size), self._data.rest)
        )
        now = self._monotonic()
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
