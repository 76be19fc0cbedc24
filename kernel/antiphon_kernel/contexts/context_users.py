"""Users of open contexts: as long as there is one, a context stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Final

from antiphon_kernel.types.clock import Clock


class ContextUsers:
    """The number of those who need one open context, and when it was last needed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.count = 0
        self.used_at = clock.monotonic()
        """When the last one had no more need of it."""

    def add(self) -> Callable[[], None]:
        """Count somebody who needs the context; return the way to stop, which works once."""
        self.count += 1
        waiting = [self._remove]
        return lambda: waiting.pop()() if waiting else None

    def add_current(self) -> None:
        """Count the work that is being done now, until it ends; see `UseScope`."""
        scope = _current.get()
        task = _current_task()
        if scope is None or scope.task is not task or scope.is_over:
            if task is None:  # a callback, which is over before anybody else can do anything
                self.touch()
                return
            scope = UseScope()
            _current.set(scope)
            task.add_done_callback(scope.end)
        if self not in scope.used:
            scope.used[self] = self.add()

    def touch(self) -> None:
        """Note that the context is used now."""
        self.used_at = self._clock.monotonic()

    def _remove(self) -> None:
        self.count -= 1
        self.touch()


class UseScope:
    """A piece of work; the contexts that it has asked for stay open until its end.

    Unless one has been entered, that is the end of the task that has asked.
    """

    __slots__ = ("_token", "is_over", "task", "used")

    def __init__(self) -> None:
        self.task = _current_task()
        self.used: dict[ContextUsers, Callable[[], None]] = {}
        self.is_over = False
        self._token: Token[UseScope | None] | None = None

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self.end()

    def end(self, _: object = None) -> None:
        """Need none of the contexts any more."""
        self.is_over = True
        self.task = None  # which keeps this scope in its variables
        for stop in self.used.values():
            stop()
        self.used.clear()


_current: Final[ContextVar[UseScope | None]] = ContextVar("use of contexts", default=None)


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return None
