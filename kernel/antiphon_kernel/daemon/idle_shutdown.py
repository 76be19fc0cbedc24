"""Shutdown of a process that nobody needs."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.clock import Clock

IDLE_SECONDS: Final = 30 * 60.0
"""A project's kernel ends after this long without a connection."""

CHECK_SECONDS: Final = 0.25
"""Pause between two looks: the server tells nobody when a connection comes or goes."""

_PIPE_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """Idle time limits of a kernel, in seconds; None: no limit."""

    before_first_client: float | None = IDLE_SECONDS
    """Until the first client has come."""
    after_last_client: float | None = IDLE_SECONDS
    """Until anyone comes back."""


class IdleShutdown:
    """Watches how long a kernel has been alone."""

    def __init__(self, idle_policy: IdlePolicy, clock: Clock) -> None:
        self._idle_policy = idle_policy
        self._clock = clock
        self._someone_came = False
        self._visits = 0
        self._alone_since = clock.monotonic()
        self._has_starter = True

    def watch_starter(self, pipe: int) -> None:
        """Wait for nobody any more, nor for a turn, once the other end of a pipe is closed.

        Whoever started the process has gone then, and nobody would start it again. What is written
        to the pipe is not read.
        """
        loop = asyncio.get_running_loop()

        def readable() -> None:
            if not os.read(pipe, _PIPE_BYTES):
                loop.remove_reader(pipe)
                self._has_starter = False
                self._idle_policy = IdlePolicy(before_first_client=0.0, after_last_client=0.0)

        loop.add_reader(pipe, readable)

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
