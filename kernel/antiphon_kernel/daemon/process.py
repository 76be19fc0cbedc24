"""The process of a kernel: its event loop, its log, and its end when nobody needs it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, TypeVar

from antiphon_kernel.types.clock import Clock

_FASTER: Final = "uvloop"
"""A loop of the same behaviour that needs less processor time for each message."""

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` like `asyncio.run`, in the faster loop where that is installed."""
    factory = None if find_spec(_FASTER) is None else import_module(_FASTER).new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


logger = logging.getLogger("antiphon_kernel")

LOG_BYTES = 1_000_000
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _PrivateFileHandler(RotatingFileHandler):
    """A rotating log whose files only this user can read."""

    def _open(self) -> TextIOWrapper:
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.fchmod(handle, 0o600)
        os.close(handle)
        return super()._open()


def log_to(path: Path, *, echo: bool) -> None:
    """Log into `path` (the last two megabytes are kept), warnings also to stderr if `echo`.

    Whoever starts a kernel in the background lets its stderr end in the same file.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [
        _PrivateFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    ]
    if echo and not os.path.samestat(path.stat(), os.fstat(sys.stderr.fileno())):
        console = logging.StreamHandler(sys.stderr)
        console.setLevel(logging.WARNING)
        handlers.append(console)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
        root.addHandler(handler)


def report_task_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The loop's exception handler: a failure is logged with the name of what failed."""
    del loop
    task = context.get("task") or context.get("future")
    name = task.get_name() if isinstance(task, asyncio.Task) else context.get("handle")
    error = context.get("exception")
    logger.error(
        "uncaught failure in %s: %s", name or "a callback", context.get("message"), exc_info=error
    )


IDLE_SECONDS: Final = 30 * 60.0
"""A project's kernel ends after this long without a connection."""

CHECK_SECONDS: Final = 0.25

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

    async def wait(self, look: Callable[[], tuple[int, int, bool]]) -> None:
        """Return when it is time to end; `look` gives connections, visits, and whether busy."""
        # The server tells nobody when a connection comes or goes.
        while True:
            connections, visits, busy = look()
            if self.observe(connections, visits=visits, busy=busy):
                return
            await asyncio.sleep(CHECK_SECONDS)
