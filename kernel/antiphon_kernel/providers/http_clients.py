"""HTTP clients that the libraries of services send through."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpx2

from antiphon_kernel.types.collection_pause import without_collection

CONNECTING: Final = 15.0
"""Seconds for a connection, and for what is sent over it."""

TAIL: Final = 64
"""Bytes of what came before that are kept to find a terminator that comes in two pieces."""


_received: ContextVar[list[httpx2.Response] | None] = ContextVar("_received", default=None)

_building: ContextVar[ExitStack | None] = ContextVar("_building", default=None)
"""The pause of the garbage collector that ends when the request is sent."""


@contextmanager
def building_request() -> Iterator[None]:
    """Pause the garbage collector until a client sends the request that is built meanwhile.

    A long context makes many objects, all of which are kept until then.
    """
    with ExitStack() as pause:
        pause.enter_context(without_collection())
        token = _building.set(pause)
        try:
            yield
        finally:
            _building.reset(token)


@contextmanager
def receiving() -> Iterator[list[httpx2.Response]]:
    """Give a list of the responses that clients receive meanwhile.

    Whoever is to stop closes them: not every library does that before its generators are collected.
    """
    received: list[httpx2.Response] = []
    token = _received.set(received)
    try:
        yield received
    finally:
        _received.reset(token)


class ServiceClient(httpx2.AsyncClient):
    """Client for one provider; takes an answer that ends without its terminator for a cut one."""

    def __init__(self, silence: float, terminator: re.Pattern[bytes] | None = None) -> None:
        super().__init__(timeout=httpx2.Timeout(CONNECTING, read=silence), follow_redirects=True)
        self._terminator = terminator

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; the pause for building it is over."""
        if (pause := _building.get()) is not None:
            pause.close()
        # The libraries set times of their own, or none.
        request.extensions["timeout"] = self.timeout.as_dict()
        response = await super().send(request, **options)
        if (received := _received.get()) is not None:
            received.append(response)
        stream = response.stream
        if self._terminator is not None and response.is_success and not response.is_closed:
            assert isinstance(stream, httpx2.AsyncByteStream)
            response.stream = _TerminatedStream(stream, self._terminator)
        return response


class RequestRecorder(httpx2.AsyncClient):
    """Client that keeps the body of a request instead of sending it."""

    body: Any = None

    async def send(self, request: httpx2.Request, **_options: Any) -> httpx2.Response:
        """Keep the request's body.

        Raises:
            httpx2.ConnectError: always, as nothing is sent.
        """
        self.body = json.loads(await request.aread())
        raise httpx2.ConnectError("not to be sent", request=request)


class _TerminatedStream(httpx2.AsyncByteStream):
    """Body of an answer; its end is an error unless the terminator was in it."""

    def __init__(self, stream: httpx2.AsyncByteStream, terminator: re.Pattern[bytes]) -> None:
        self._stream = stream
        self._terminator = terminator

    async def __aiter__(self) -> AsyncIterator[bytes]:
        tail = b""
        is_whole = False
        async for piece in self._stream:
            tail += piece
            is_whole = is_whole or self._terminator.search(tail) is not None
            tail = tail[-TAIL:]
            yield piece
        if not is_whole:
            raise httpx2.RemoteProtocolError("the answer ended before its last event")

    async def aclose(self) -> None:
        await self._stream.aclose()
