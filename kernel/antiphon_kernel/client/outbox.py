"""Outbox of local changes: what is still to be sent, and what the kernel has on disk."""

from __future__ import annotations

import asyncio
from collections import deque

from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.merge import merge, squash
from antiphon_kernel.yjs.update import decode_update


class Outbox:
    """Counts local changes through the three stages written, sent, saved.

    The kernel acknowledges *frames* of one connection, in order; each frame carries all changes up
    to a certain one. While there is no open connection changes are only counted: the handshake of
    the next one sends whatever the kernel lacks in one frame.
    """

    def __init__(self) -> None:
        self._written = 0
        self._saved = 0
        self.open = False
        """Whether changes can be sent as they come."""
        self._unsent: list[bytes] = []
        self._frames_sent = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._failure: AntiphonError | None = None

    @property
    def unsaved(self) -> int:
        """Number of changes not on the kernel's disk, as far as is known."""
        return self._written - self._saved

    def add(self, update: bytes) -> None:
        """A change was made here."""
        self._written += 1
        if self.open:
            self._unsent.append(update)

    def start_connection(self) -> None:
        """A new connection: nothing has been sent on it."""
        self.open = False
        self._unsent.clear()
        self._in_flight.clear()
        self._frames_sent = 0

    def everything_sent(self) -> None:
        """A frame with all that the kernel lacks is being sent; from here on changes follow it."""
        self.open = True
        self._unsent.clear()
        self._sent()

    def take(self) -> bytes | None:
        """The changes that have not been sent yet, as one update, which counts as sent now."""
        if not self._unsent:
            return None
        update = merge(self._unsent)
        if len(self._unsent) > 1:
            update = squash(decode_update(update))
        self._unsent.clear()
        self._sent()
        return update

    def acknowledged(self, frames: int) -> None:
        """The first `frames` frames of this connection are on the kernel's disk."""
        while self._in_flight and self._in_flight[0][0] <= frames:
            self._saved = max(self._saved, self._in_flight.popleft()[1])
        due = [future for target, future in self._waiting if target <= self._saved]
        self._waiting = [entry for entry in self._waiting if entry[0] > self._saved]
        for future in due:
            if not future.done():
                future.set_result(None)

    async def saved(self) -> None:
        """Wait until everything written so far is on the kernel's disk.

        Raises:
            AntiphonError: if it can no longer get there.
        """
        if self._saved >= self._written:
            return
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._written, future))
        await future

    def flush(self) -> None:
        """All that was written has got there in another way."""
        self._saved = self._written
        self.acknowledged(0)

    def fail(self, error: AntiphonError) -> None:
        """Nothing more will be saved: whoever waits for it learns why."""
        self._failure = error
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()

    def _sent(self) -> None:
        self._frames_sent += 1
        self._in_flight.append((self._frames_sent, self._written))
