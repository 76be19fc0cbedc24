"""Waiting for a condition, with a deadline and a failure that names the condition."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

Value = TypeVar("Value")

PATIENCE: Final = 60.0
"""Seconds after which what has not come is taken never to come.

It bounds a hang and claims nothing about speed: a busy machine takes its time.
"""

UPDATE_SECONDS: Final = 0.02
"""Longer than from a change to the update of an app's screen."""


_failures: Final[list[Callable[[], BaseException | None]]] = []
"""Of what runs now; what is waited for does not come any more after one."""


@contextlib.asynccontextmanager
async def fail_with(failure: Callable[[], BaseException | None]) -> AsyncIterator[None]:
    """Let whoever waits fail at once with what `failure` returns, if it does."""
    _failures.append(failure)
    try:
        yield
    finally:
        _failures.remove(failure)


def _check_failures() -> None:
    for failure in _failures:
        if (error := failure()) is not None:
            raise error


async def until(
    condition: Callable[[], object],
    what: str | Callable[[], str] = "",
    seconds: float = PATIENCE,
) -> None:
    """Let the event loop go on until `condition` holds; fail after `seconds`.

    Args:
        what: the condition in words, or a function that returns them once the time is over; by
            default the condition's source.
    """
    deadline = time.monotonic() + seconds
    pause = 0.002
    while not condition():
        if time.monotonic() > deadline:
            words = what() if callable(what) else what or _source(condition)
            raise AssertionError(f"waited {seconds:g} s in vain for {words}")
        _check_failures()
        await asyncio.sleep(pause)
        # A condition can cost a whole screen: it is looked at less often the longer it takes.
        pause = min(1.3 * pause, 0.02)


def wait_until(get: Callable[[], Value | None], what: str, seconds: float = PATIENCE) -> Value:
    """The first value that is true, for tests without an event loop; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if value := get():
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        # Many are calls of a kernel, which has other work.
        time.sleep(min(max(0.02, 3 * (now - began)), 0.2))


def _source(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (TypeError, OSError):  # a partial, or a lambda made elsewhere
        return repr(condition)


async def screen_updated(_: float = 0) -> None:
    """Let the event loop do what is to be done, and what the next update of the screen brings."""
    _check_failures()
    await _nothing_ready()
    await asyncio.sleep(UPDATE_SECONDS)
    await _nothing_ready()


async def _nothing_ready() -> None:
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # noqa: SLF001
    turns, deadline = 0, time.monotonic() + PATIENCE
    while turns < 2:
        if time.monotonic() > deadline:
            raise AssertionError(f"the event loop has been busy for {PATIENCE:g} s")
        await asyncio.sleep(0)
        turns = 0 if ready else turns + 1
