"""Shutdown of a process that nobody needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.clock import Clock

IDLE_SECONDS: Final = 30 * 60.0
"""A project's kernel ends after this long without a connection."""

CHECK_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """Idle time limits of a kernel, in seconds; None: no limit."""

    before_first_client: float | None = IDLE_SECONDS
    """Until the first client has come."""
    after_last_client: float | None = IDLE_SECONDS
    """Until anyone comes back."""

    @classmethod
    def with_last_client(cls) -> IdlePolicy:
        """End with the last client: long enough for a slow start, a reconnect, a restart."""
        return cls(before_first_client=60.0, after_last_client=10.0)

    @classmethod
    def without_starter(cls) -> IdlePolicy:
        """End with the last client, at once: who would start it again has gone."""
        return cls(before_first_client=0.0, after_last_client=0.0)


class IdleShutdown:
    """Watches how long a kernel has been alone."""

    def __init__(self, idle_policy: IdlePolicy, clock: Clock) -> None:
        self._idle_policy = idle_policy
        self._clock = clock
        self._someone_came = False
        self._visits = 0
        self._alone_since = clock.monotonic()
        self._has_starter = True

    def lose_starter(self) -> None:
        """Wait for nobody any more, nor for a turn: whoever started the process has gone."""
        self._has_starter = False
        self._idle_policy = IdlePolicy.without_starter()

    def observe(self, connections: int, *, visits: int = 0, busy: bool = False) -> bool:
        """Take note of what is going on now; whether it is time to end.

        Args:
            connections: how many authenticated clients are connected.
            visits: how many have been so far; a call over HTTP takes less time than a look.
            busy: whether there is work that needs no client, such as a turn that is being played.
        """
        now = self._clock.monotonic()
        came, self._visits = visits > self._visits, visits
        if connections or came:
            self._someone_came = True
        if connections or (self._has_starter and (came or busy)):
            self._alone_since = now
        wait = (
            self._idle_policy.after_last_client
            if self._someone_came
            else self._idle_policy.before_first_client
        )
        return wait is not None and now - self._alone_since >= wait

    async def wait(
        self,
        connections: Callable[[], int],
        visits: Callable[[], int],
        busy: Callable[[], bool],
    ) -> None:
        """Return when it is time to end."""
        # The server tells nobody when a connection comes or goes.
        while not self.observe(connections(), visits=visits(), busy=busy()):  # noqa: ASYNC110
            await asyncio.sleep(CHECK_SECONDS)
