"""Waiting for something that is on its way, with a deadline and a word about what did not come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

Value = TypeVar("Value")

PATIENCE: Final = 60.0
"""Seconds after which what has not come is taken never to come.

It bounds a hang and claims nothing about speed: a busy machine takes its time.
"""


async def until(condition: Callable[[], object], what: str = "", seconds: float = PATIENCE) -> None:
    """Let the event loop go on until `condition` holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come to pass: {what or condition}")
        await asyncio.sleep(0.002)


def wait_until(get: Callable[[], Value | None], what: str, seconds: float = PATIENCE) -> Value:
    """The first value that is true, for tests without an event loop; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := get()):
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come to pass: {what}")
        time.sleep(0.02)
    return value
