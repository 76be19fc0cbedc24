"""Whether a call that needs a context of another kernel is carried out there, or fetches it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from weakref import ref


@contextmanager
def forwarding(*, fetches: bool = False) -> Iterator[None]:
    """Let the current task raise NotOwnerError for what another kernel has.

    Otherwise the other kernel is asked to hand it over, also by the tasks that this one begins:
    what goes on by itself is nobody's call. If it `fetches`, that kernel is asked all the same;
    `is_unchanged` tells of such a call too.
    """
    task = asyncio.current_task()
    assert task is not None, "only a task carries out calls"
    token = _call.set((ref(task), not fetches))
    try:
        yield
    finally:
        _call.reset(token)


def stop_forwarding() -> None:
    """Let the current task fetch what it needs: done once more, what it has changed would be too.

    `forwarding` that it is within has no effect any more.
    """
    if is_unchanged():
        _call.set(None)


def is_forwarding() -> bool:
    """Return whether the current task is within `forwarding`."""
    call = _call.get()
    return is_unchanged() and call is not None and call[1]


def is_unchanged() -> bool:
    """Return whether the current task carries out a call that has changed nothing so far."""
    call = _call.get()
    return call is not None and call[0]() is asyncio.current_task()


_call: Final[ContextVar[tuple[ref[asyncio.Task[Any]], bool] | None]] = ContextVar(
    "the task that carries out a call, and whether the kernel that has its context does so instead",
    default=None,
)
