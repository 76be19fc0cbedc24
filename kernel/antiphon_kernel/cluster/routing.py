"""Whether a call that needs a context of another kernel is carried out there, or fetches it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from weakref import ref


@contextmanager
def forwarding() -> Iterator[None]:
    """Let the current task raise NotOwnerError for what another kernel has.

    Otherwise the other kernel is asked to hand it over, also by the tasks that this one begins:
    what goes on by itself is nobody's call.
    """
    task = asyncio.current_task()
    assert task is not None, "only a task carries out calls"
    token = _forwarding.set(ref(task))
    try:
        yield
    finally:
        _forwarding.reset(token)


def stop_forwarding() -> None:
    """Let the current task fetch what it needs: done once more, what it has changed would be too.

    `forwarding` that it is within has no effect any more.
    """
    if is_forwarding():
        _forwarding.set(None)


def is_forwarding() -> bool:
    """Return whether the current task is within `forwarding`."""
    task = _forwarding.get()
    return task is not None and task() is asyncio.current_task()


_forwarding: Final[ContextVar[ref[asyncio.Task[Any]] | None]] = ContextVar(
    "the task whose calls are carried out by the kernel that has their context", default=None
)
