"""A WebSocket as the server speaks it: nobody keeps the event loop busy by what they send at once.

What one read brings may be tens of thousands of frames, and many clients may come at one moment.
Both are taken up piece by piece, and others have their turn in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request

from antiphon_kernel.server.connections import TrackedProtocol
from antiphon_kernel.server.message_splitter import MessageSplitter
from antiphon_kernel.server.scope import CONNECTION

Deliver = Callable[[list[bytes]], int]
"""Takes in messages; how many of them, from the first on, it has taken: the rest has to wait."""

_PIECE: Final = 8 * 2**10
"""Bytes taken up in one turn: a thousand of the shortest frames."""

_EARLY: Final = 64 * 2**10
"""Bytes that are read of a client before it is authenticated."""


_SMALL: Final = 2**10
_AHEAD: Final = 64
"""Messages of so many bytes at most that are read ahead of the application."""


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
    deliver: Deliver | None = None
    """Takes messages ahead of the queue while that is empty, without a task, those that it can."""

    @property
    def is_served(self) -> bool:
        return self._has_asked and not self.close_sent

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
                self._take_messages(messages)
            if others:
                super().data_received(others)

    def _take_messages(self, messages: list[bytes]) -> None:
        """Deliver messages, in order; those that have to wait are queued."""
        taken = self.deliver(messages) if self.deliver is not None and self.queue.empty() else 0
        for message in messages[taken:]:
            self.handle_bytes(Frame(Opcode.BINARY, message))

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
