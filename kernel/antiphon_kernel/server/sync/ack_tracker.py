"""Tracker of a connection's updates on disk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class AckTracker:
    """Counts the update frames of one connection as they reach the disk, in order.

    A frame with a gap is not applied; it and what follows count only once a later frame, which
    the client makes in answer to our sync step 1, has brought all that was missing.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._received = 0
        self._promised = 0
        self._gap = False
        self._under_way: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._room = asyncio.Event()
        self.on_disk = 0
        """How many frames, from the first on, are on disk."""
        self.failure: BaseException | None = None
        """Why an update will never be on disk."""

    def gap(self) -> None:
        """A frame came that builds on something missing."""
        self._received += 1
        self._gap = True

    def applied(self, future: asyncio.Future[None], *, complete: bool, frames: int = 1) -> None:
        """Frames were applied as one; `future` ends when they are on disk.

        Args:
            complete: whether it holds everything that the client has and the kernel had not.
        """
        self._received += frames
        if complete:
            self._gap = False
        if not self._gap:
            self._promised = self._received
        self._under_way.append((self._promised, future))
        future.add_done_callback(self._done)

    @property
    def under_way(self) -> int:
        """Return how many updates have been applied and are not on disk."""
        return len(self._under_way)

    async def fewer_than(self, limit: int) -> None:
        """Wait until fewer than `limit` updates are under way."""
        while len(self._under_way) >= limit:
            self._room.clear()
            await self._room.wait()

    def _done(self, _: object) -> None:
        before = self.on_disk
        while self._under_way and self._under_way[0][1].done():
            number, future = self._under_way.popleft()
            if future.cancelled():
                self.failure = asyncio.CancelledError()
            elif (error := future.exception()) is not None:
                self.failure = error
            elif self.failure is None:
                self.on_disk = number
        self._room.set()
        if self.on_disk != before or self.failure is not None:
            self._on_change()
