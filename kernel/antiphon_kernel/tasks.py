"""Work on the event loop: in short slices, never broken off in the middle, or in the background."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from math import inf
from typing import Any, Final, TypeVar

from antiphon_kernel.types.errors import AntiphonError

T = TypeVar("T")

_SLICE_SECONDS: Final = 0.008


class TimeSlice:
    """Lets the rest of the program work again and again during a long task."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + _SLICE_SECONDS

    async def pause(self) -> None:
        """Yield to the event loop if a slice has been used up since the last time."""
        if time.perf_counter() >= self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + _SLICE_SECONDS


def portions(
    items: Iterable[T], size_of: Callable[[T], int], *, size: int, count: float = inf
) -> Iterator[list[T]]:
    """Yield items in portions that are done in one go: of so many at most, or of so large a size.

    Only the last item of one may go beyond its size.
    """
    portion, held = list[T](), 0
    for item in items:
        portion.append(item)
        held += size_of(item)
        if held >= size or len(portion) >= count:
            yield portion
            portion, held = [], 0
    if portion:
        yield portion


async def run_uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` completely; a cancellation that comes meanwhile is raised afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class BackgroundTasks:
    """Work that nobody waits for, by one owner; the log says what has failed."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._running = set[asyncio.Task[Any]]()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Begin some work."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Cancel what is under way, and wait for its end."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            trace = None if isinstance(error, AntiphonError) else error
            self._log.error("%s failed: %s", task.get_name(), error, exc_info=trace)
