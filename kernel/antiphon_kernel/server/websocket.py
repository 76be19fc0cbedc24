"""A WebSocket as the server speaks it: nobody keeps the event loop busy by what they send at once.

What one read brings may be tens of thousands of frames, and many clients may come at one moment.
Both are taken up piece by piece, and others have their turn in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode, apply_mask  # type: ignore[attr-defined]
from websockets.http11 import Request

from antiphon_kernel.server.connections import CONNECTION, TrackedProtocol

_PIECE: Final = 8 * 2**10
"""Bytes taken up in one turn: a thousand of the shortest frames."""

_EARLY: Final = 64 * 2**10
"""Bytes that are read of a client before it is authenticated."""


_SMALL: Final = 2**10
_AHEAD: Final = 64
"""Messages of so many bytes at most that are read ahead of the application."""


_BINARY: Final = 0x82
"""The first byte of a binary message in one frame."""

_FIN: Final = 0x80
_MASKED: Final = 0x80
_FIRST: Final = (0x1, 0x2)
_CONTINUED: Final = 0x0
_PING_PONG: Final = (0x89, 0x8A)


class MessageSplitter:
    """Splitter of the frames of one connection, from its first frame on.

    The library reads a frame through a chain of generators, which takes longer than checking and
    applying what a keystroke says. A message that is one frame, all of it here, needs no parser;
    anything else is the library's to read, and to reject.

    The library gets the bytes of every other frame in their place. From a frame on that ends the
    connection, because it closes it or because no client may send it, it gets everything.
    """

    def __init__(self, limit: int) -> None:
        """`limit` is the most bytes of a message; a longer one ends the connection."""
        self._limit = limit
        self._begun = b""
        """A frame that has begun, without its length so far."""
        self._missing = 0
        """Bytes still to come of the frame that the library is reading."""
        self._fragmented = False
        """Whether a message has begun that goes on in the next frames."""
        self._fragments = 0
        """Bytes of that message so far."""
        self._ending = False

    def split(self, data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
        """Yield runs of messages, each with the bytes behind it that are the library's."""
        if self._begun:
            data, self._begun = self._begun + data, b""
        messages: list[bytes] = []
        size = len(data)
        begin, at = 0, min(self._missing, size)
        self._missing -= at
        while at < size and not self._ending:
            head = data[at]
            payload = _payload(data, at)
            if payload is None:
                self._begun = data[at:]
                size = at
                break
            start, end = payload
            length = end - start
            is_whole = head == _BINARY and end <= size and length <= self._limit
            if is_whole and start and not self._fragmented:
                if begin < at:
                    yield messages, data[begin:at]
                    messages = []
                messages.append(apply_mask(data[start:end], data[start - 4 : start]))
                begin = at = end
            else:
                self._pass_on(head, length, masked=bool(start))
                self._missing = max(0, end - size)
                at = min(end, size)
        yield messages, data[begin:size]

    def _pass_on(self, head: int, length: int, *, masked: bool) -> None:
        """Take note of a frame that the library reads, with so many bytes of payload."""
        opcode = head & ~_FIN
        expected = (_CONTINUED,) if self._fragmented else _FIRST
        if opcode in expected and masked:
            self._fragments = self._fragments + length if self._fragmented else length
            self._fragmented = not head & _FIN
            self._ending = self._fragments > self._limit
        elif head not in _PING_PONG or not masked:
            self._ending = True


class AcceptQueue:
    """Lets one client in at a turn."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def enqueue(self, enter: Callable[[], None]) -> None:
        """Call `enter` when it is the client's turn."""
        self._waiting.append(enter)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        enter = self._waiting[0]
        try:
            enter()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._next)


class WebSocketProtocol(TrackedProtocol, WebSocketsSansIOProtocol):
    """The server's connection, with ways to drop it, and to send and receive at once."""

    doorman: AcceptQueue
    _pieces: deque[bytes] | None = None
    _has_asked = False
    """Whether its handshake has come."""
    _early: int | None = 0
    """Bytes that came before the first session began; None from then on."""
    _splitter: MessageSplitter | None = None
    """Finds the messages that come after the handshake."""
    deliver: Callable[[list[bytes]], int] | None = None
    """Takes messages ahead of the queue while that is empty, without a task, those that it can; how
    many of them, from the first on, it has taken: the rest has to wait."""

    @property
    def is_served(self) -> bool:
        return self._has_asked and not self.close_sent

    def shutdown(self) -> None:
        # Whoever has not heard a goodbye yet would lose it by what they send to a closed socket.
        if not self.close_sent:
            super().shutdown()

    def begin_session(self) -> None:
        super().begin_session()
        early, self._early = self._early, None
        if early is not None and early > _EARLY and not self.read_paused and self._pieces is None:
            self.transport.resume_reading()

    async def run_asgi(self) -> None:
        self.scope[CONNECTION] = self  # type: ignore[typeddict-unknown-key]
        try:
            await super().run_asgi()
        finally:
            # Or all of this would wait for the garbage collector.
            self.deliver = None
            del self.scope[CONNECTION]  # type: ignore[typeddict-item]
        while self.close_timer is not None and not self.disconnected:
            await self.queue.get()  # until its client has heard the goodbye

    def handle_connect(self, event: Request) -> None:
        self._has_asked = True
        self.doorman.enqueue(partial(self._accept, event))

    def _accept(self, event: Request) -> None:
        if not self.transport.is_closing():
            super().handle_connect(event)

    def send_receive_event_to_app(self) -> None:
        """Pass a message on, and go on reading as long as little waits.

        The library pauses reading after each message and resumes it for the next, which takes
        longer than reading it.
        """
        is_small = sum(map(len, self.frames)) <= _SMALL
        paused, self.read_paused = self.read_paused, True
        super().send_receive_event_to_app()
        self.read_paused = paused
        if not (paused or (is_small and self.queue.qsize() < _AHEAD)):
            self.read_paused = True
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self._early is not None:
            self._early += len(data)
            if self._early > _EARLY:
                # A stranger gets no more memory than this, whatever frame they have begun.
                self.transport.pause_reading()
        if self._pieces is not None:
            # The library has resumed reading, and a read brings more than is taken up in a turn:
            # a client that sends on after its last frame was refused would fill the memory.
            self._pieces.extend(_cut(data))
            self.transport.pause_reading()
        elif len(data) <= _PIECE:
            self._take(data)
        else:
            self._pieces = deque(_cut(data))
            self.transport.pause_reading()
            self._process_next()

    def _process_next(self) -> None:
        if self._pieces is None:
            return
        self._take(self._pieces.popleft())
        if self._pieces:
            self.loop.call_soon(self._process_next)
            return
        self._pieces = None
        self._read_on()

    def _process_all(self) -> None:
        """Nothing more will come; what has come is passed on."""
        pieces, self._pieces = self._pieces, None
        for piece in pieces or ():
            self._take(piece)

    def _take(self, data: bytes) -> None:
        if self._splitter is None:  # this is the handshake
            self._splitter = MessageSplitter(self.config.ws_max_size)
            super().data_received(data)
            return
        for messages, others in self._splitter.split(data):
            if messages and not self.close_sent:
                is_free = self.deliver is not None and self.queue.empty()
                taken = self.deliver(messages) if self.deliver is not None and is_free else 0
                for message in messages[taken:]:  # which have to wait
                    self.handle_bytes(Frame(Opcode.BINARY, message))
            if others:
                super().data_received(others)

    def hold(self, seconds: float) -> None:
        """Read nothing for a while: what comes meanwhile is read at once."""
        self.transport.pause_reading()
        self.loop.call_later(seconds, self._read_on)

    def _read_on(self) -> None:
        early = self._early is not None and self._early > _EARLY
        if self.read_paused or early or self._pieces is not None:
            return
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def eof_received(self) -> None:
        self._process_all()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._process_all()
        super().connection_lost(exc)

    def send_now(self, message: bytes) -> bool:
        if self.disconnected or self.close_sent or self.transport.is_closing():
            return False
        if not self.handshake_complete or not self.writable.is_set():
            return False
        self.transport.write(message)
        return True


def _cut(data: bytes) -> list[bytes]:
    return [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]


def _payload(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the payload of the frame at `at` starts and ends; None if that is not here yet.

    It starts at 0 if it is not masked.
    """
    size = len(data)
    if size < at + 2:
        return None
    length = data[at + 1] - _MASKED
    if length < 0:
        return 0, size
    start = at + 6
    if length >= 126:
        start += 2 if length == 126 else 8
    if size < start:
        return None
    if length >= 126:
        length = int.from_bytes(data[at + 2 : start - 4])
    return start, start + length
