"""Signals: listeners and waiters, and how they are told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic, TypeVarTuple

Values = TypeVarTuple("Values")


class Signal(Generic[*Values]):
    """Listeners that are called, in the order in which they came, with what is notified."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[*Values], None]] = []

    def listen(self, listener: Callable[[*Values], None]) -> Callable[[], None]:
        """Call `listener` with everything from now on; returns the way to stop."""
        self._listeners.append(listener)
        kept = [listener]
        # Whoever keeps the way to stop does not keep itself alive by it.
        return lambda: self._remove(kept.pop()) if kept else None

    def notify(self, *values: *Values) -> None:
        """Call every listener; those that are added meanwhile are left out."""
        for listener in tuple(self._listeners):
            listener(*values)

    def _remove(self, listener: Callable[[*Values], None]) -> None:
        if listener in self._listeners:  # else the signal has been cleared
            self._listeners.remove(listener)

    def clear(self) -> None:
        """Notify nobody any more."""
        self._listeners.clear()


class News:
    """Wakes whoever waits for something to have changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def announce(self) -> None:
        """Let everybody look who waits now."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float | None = None) -> None:
        """Return at the next announcement, or after so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
