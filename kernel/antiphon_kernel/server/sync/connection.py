"""One client of a room, over ASGI."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Receive, Send

from antiphon_kernel.server.connections import CONNECTION, GUARD
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.rate_limits import BatchPause, RateLimiter
from antiphon_kernel.server.sync.send_queue import SendQueue
from antiphon_kernel.server.websocket import WebSocketProtocol
from antiphon_kernel.storage import CorruptContextError, Cut
from antiphon_kernel.types.errors import AntiphonError, NotOwnerError
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.signal import News
from antiphon_kernel.yjs.close_codes import CloseCode
from antiphon_kernel.yjs.frames import PermissionDenied, encode_frame

_REASON_BYTES: Final = 123

_ENOUGH: Final = 16
"""Messages that come at once from which on the next are not waited for."""


@dataclass(frozen=True, slots=True)
class CloseFrame:
    """End of a connection: a last frame, then the close code with its reason."""

    code: CloseCode
    reason: str
    frame: bytes | None = None

    @classmethod
    def with_whole_reason(cls, code: CloseCode, reason: str) -> CloseFrame:
        """Return the end of a connection behind a frame with all of the reason.

        A close frame has room for its first 123 bytes.
        """
        return cls(code, reason, encode_frame(PermissionDenied(reason)))

    @classmethod
    def of_failure(cls, error: AntiphonError) -> CloseFrame:
        """Return the end for a client that needs what cannot be read or written, at least here.

        Who needs what is damaged gets the answer of a context that is not open, and would come
        again and again otherwise. Where another kernel has the context, one comes again at once.
        """
        if isinstance(error, NotOwnerError):
            return cls(CloseCode.MOVED, error.message)
        is_damaged = isinstance(error, CorruptContextError)
        code = CloseCode.NOT_FOUND if is_damaged else CloseCode.RESTART
        return cls.with_whole_reason(code, error.message)


class ConnectionEnded(Exception):
    """The client has left, or has to: it does something that the protocol does not know."""

    def __init__(self, goodbye: CloseFrame | None = None) -> None:
        """`goodbye` is what it is told; None if it is gone already."""
        super().__init__(goodbye)
        self.goodbye = goodbye


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
        self.under_way: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Updates that have been applied and are not on disk."""
        self._written = News()
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
        self.under_way.append((self._promised, future))
        future.add_done_callback(self._done)

    async def fewer_than(self, limit: int) -> None:
        """Wait until fewer than `limit` updates are under way."""
        while len(self.under_way) >= limit:
            await self._written.wait()

    def _done(self, _: object) -> None:
        before = self.on_disk
        while self.under_way and self.under_way[0][1].done():
            number, future = self.under_way.popleft()
            if future.cancelled():
                self.failure = asyncio.CancelledError()
            elif (error := future.exception()) is not None:
                self.failure = error
            elif self.failure is None:
                self.on_disk = number
        self._written.announce()
        if self.on_disk != before or self.failure is not None:
            self._on_change()


class SyncConnection:
    """The channel to one client, who is behind it, and what it has been told."""

    def __init__(
        self,
        scope: Mapping[str, Any],
        actor: Actor,
        receive: Receive,
        send: Send,
        limits: ServerLimits,
        *,
        wants_acks: bool,
    ) -> None:
        self.actor = actor
        self.limits = limits
        self.outgoing = SendQueue(limits.unread, scope[GUARD].send_now)
        self.receipts = AckTracker(self._saved)
        self.pace = RateLimiter(limits)
        self._loop = asyncio.get_running_loop()
        self.since = self._loop.time()
        self.joined = False
        """Whether the client has said what it has: from then on it gets every change."""
        self.caught_up = False
        """Whether the client's first update has come: it may bring hours of offline writing."""
        self.recent = 0
        """Number of the last blocks that the client wants of a document; 0 for all."""
        self.began_with: Cut | None = None
        """Point of the history that the state begins at which it was given instead of all."""
        self.begins_anew = False
        """Whether the document that it comes with is of no use any more."""
        self.awareness_client: int | None = None
        self.goodbye: CloseFrame | None = None
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self.is_listened_to = False
        """Whether the next message is waited for, and nothing else."""
        self.pause = BatchPause(limits.read_tick, _ENOUGH, self._loop.time)
        """When to wait for more before the client is read again."""
        self.rests_until = 0.0
        """When the next message may be taken in, by the loop's clock."""
        self.line: WebSocketProtocol = scope[CONNECTION]
        self.send = send
        self._receive = receive
        self._ended: ConnectionEnded | None = None
        self._wants_acks = wants_acks

    async def recv(self) -> bytes:
        """The next binary message.

        Raises:
            ConnectionEnded: the client has gone, or sent text.
        """
        if self._ended is not None:
            raise self._ended
        self.is_listened_to = True
        message = await self._receive()
        self.is_listened_to = False
        if message["type"] == "websocket.disconnect":
            raise ConnectionEnded
        data = message.get("bytes")
        if data is None:
            reason = "A sync connection takes binary frames, not text."
            raise ConnectionEnded(CloseFrame(CloseCode.UNSUPPORTED_DATA, reason))
        return bytes(data)

    async def arrived(self, limit: int) -> list[bytes]:
        """The messages that are here already, at most so many."""
        messages: list[bytes] = []
        while len(messages) < limit and self.line.queue.qsize() and self._ended is None:
            try:
                messages.append(await self.recv())
            except ConnectionEnded as end:
                self._ended = end
        return messages

    async def rest(self) -> None:
        """Wait until the next message may be taken in."""
        if (seconds := self.rests_until - self._loop.time()) > 0:
            await asyncio.sleep(seconds)

    def finish(self, goodbye: CloseFrame) -> None:
        """Say goodbye and hang up; the first reason counts."""
        if self.goodbye is None:
            self.goodbye = goodbye
            self._finished.set_result(None)
            self.outgoing.wake()

    async def wait_closed(self, work: asyncio.Task[Any]) -> bool:
        """Wait until `work` is done; False if the client has to go before, and `work` is cancelled.

        Raises nothing that `work` raises.
        """
        either: set[asyncio.Future[Any]] = {work, self._finished}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return work.done()
        finally:
            work.cancel()

    def _saved(self) -> None:
        failure = self.receipts.failure
        if isinstance(failure, NotOwnerError):
            self.finish(CloseFrame.of_failure(failure))
        elif failure is not None:
            self.finish(
                CloseFrame.with_whole_reason(
                    CloseCode.INTERNAL_ERROR, f"An update was not saved: {failure}"
                )
            )
        elif self._wants_acks:
            self.outgoing.ack(self.receipts.on_disk)


async def hang_up(send: Send, goodbye: CloseFrame) -> None:
    """Send a goodbye over a connection that has been accepted."""
    if goodbye.frame is not None:
        await send({"type": "websocket.send", "bytes": goodbye.frame})
    reason = short_reason(goodbye.reason)
    await send({"type": "websocket.close", "code": int(goodbye.code), "reason": reason})


def short_reason(reason: str) -> str:
    """As much of a sentence as fits into a close frame."""
    data = reason.encode()
    if len(data) <= _REASON_BYTES:
        return reason
    return data[: _REASON_BYTES - 3].decode(errors="ignore") + "…"
