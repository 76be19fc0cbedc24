"""Send queue of one client: in order, and never more than it can read."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from antiphon_kernel.yjs.frames import SyncUpdate, encode_frame
from antiphon_kernel.yjs.id_set import decode_state_vector, encode_state_vector
from antiphon_kernel.yjs.update import decode_update

_TEXT: Final = 0x81
_BINARY: Final = 0x82


def whole_message(payload: bytes | str) -> bytes:
    """A binary or text message with its header."""
    kind = _BINARY
    if isinstance(payload, str):
        kind, payload = _TEXT, payload.encode()
    size = len(payload)
    if size < 126:
        return bytes((kind, size)) + payload
    if size < 65_536:
        return bytes((kind, 126)) + size.to_bytes(2) + payload
    return bytes((kind, 127)) + size.to_bytes(8) + payload


_SMALL: Final = 65_536
"""Bytes of a frame that is sent at once to everybody who waits for one, before its turn comes."""


class UpdateFrame:
    """A change that goes to several clients; encoded once for all of them."""

    def __init__(self, update: bytes) -> None:
        self.update = update
        self.frame = encode_frame(SyncUpdate(update))

    @cached_property
    def message(self) -> bytes:
        """The frame as it goes over the connection."""
        return whole_message(self.frame)

    @cached_property
    def starts(self) -> dict[int, int]:
        """The first clock of each CRDT client in it."""
        starts: dict[int, int] = {}
        for item in decode_update(self.update).inserted():
            starts.setdefault(item.client, item.start)
        return starts


@dataclass(frozen=True, slots=True)
class StateRequest:
    """The client wants all that its state vector lacks."""

    state_vector: bytes


class SendQueue:
    """The frames for one client.

    When more than `limit` bytes wait, the queue is dropped: the client has fallen behind, and
    gets the document's state from where it stopped, once it reads again.
    """

    def __init__(self, limit: int, send_now: Callable[[bytes], bool]) -> None:
        """`send_now` sends a message that nothing is before; False if it would have to wait."""
        self._limit = limit
        self._send_now = send_now
        self._idle = False
        self._queue: deque[bytes | UpdateFrame | StateRequest] = deque()
        self.size = 0
        """Bytes that wait."""
        self._behind: dict[int, int] | None = None
        self._changed = asyncio.Event()
        self._ack: int | None = None

    def put(self, item: bytes | UpdateFrame) -> None:
        """Send a frame, or queue it; one that is no change of the document may be dropped."""
        frame = item if isinstance(item, bytes) else item.frame
        if self._idle and len(frame) <= _SMALL:
            message = whole_message(frame) if isinstance(item, bytes) else item.message
            if self._send_now(message):
                return
        if self._behind is None and self.size + len(frame) <= self._limit:
            self._queue.append(item)
            self.size += len(frame)
        else:
            if self._behind is None:
                self._behind = {}
                self._drop(self._behind)
            if isinstance(item, UpdateFrame):
                self._miss(self._behind, item)
        self.wake()

    def state(self, state_vector: bytes) -> None:
        """Queue the answer to a sync step 1; one answer does for all that wait for one."""
        for at, item in enumerate(self._queue):
            if isinstance(item, StateRequest):
                self._queue[at] = StateRequest(_lower(item.state_vector, state_vector))
                return
        self._queue.append(StateRequest(state_vector))
        self.wake()

    def ack(self, count: int) -> None:
        """Say that so many updates are on disk; of several such, the last is sent."""
        self._ack = count
        self.wake()

    def wake(self) -> None:
        """Let whoever waits in `changed` look again."""
        self._idle = False
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there is something to send, all of which has been taken and handed over."""
        self._idle = not self._changed.is_set()
        await self._changed.wait()
        self._changed.clear()

    def take(self) -> bytes | StateRequest | None:
        """The next thing to send, in order."""
        if not self._queue:
            return None
        item = self._queue.popleft()
        if isinstance(item, UpdateFrame):
            item = item.frame
        if isinstance(item, bytes):
            self.size -= len(item)
        return item

    def take_ack(self) -> int | None:
        """The acknowledgement that is due."""
        count, self._ack = self._ack, None
        return count

    def take_missed(self) -> dict[int, int] | None:
        """If the client had fallen behind: from which clock of which CRDT clients it lacks text.

        From now on changes are queued again, to be sent behind the state that brings these.
        """
        missed, self._behind = self._behind, None
        return missed

    def _drop(self, missed: dict[int, int]) -> None:
        requests: list[StateRequest] = []
        for item in self._queue:
            if isinstance(item, UpdateFrame):
                self._miss(missed, item)
            elif isinstance(item, StateRequest):
                requests.append(item)
        self._queue = deque(requests)
        self.size = 0

    @staticmethod
    def _miss(missed: dict[int, int], update: UpdateFrame) -> None:
        for client, start in update.starts.items():
            missed[client] = min(start, missed.get(client, start))


def _lower(one: bytes, other: bytes) -> bytes:
    """A state vector that knows nothing that either does not know."""
    clocks, others = decode_state_vector(one), decode_state_vector(other)
    return encode_state_vector(
        {client: min(clock, others[client]) for client, clock in clocks.items() if client in others}
    )
