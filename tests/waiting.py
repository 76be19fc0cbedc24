"""Waiting for something that is on its way, with a deadline and a word about what did not come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


async def until(condition: Callable[[], object], what: str = "", seconds: float = 20.0) -> None:
    """Let the event loop go on until `condition` holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come to pass: {what or condition}")
        await asyncio.sleep(0.002)


def wait_until(get: Callable[[], Value | None], what: str, seconds: float = 30.0) -> Value:
    """The first value that is true, for tests without an event loop; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := get()):
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come to pass: {what}")
        time.sleep(0.02)
    return value
