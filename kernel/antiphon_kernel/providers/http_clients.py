"""HTTP clients that the libraries of services send through."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from pydantic_core import to_json

from antiphon_kernel.types.memory import without_collection

CONNECTING: Final = 15.0
"""Seconds for a connection, and for what is sent over it."""

LINE_BYTES: Final = 16 * 2**20
"""Most bytes of one line of an answer: the libraries keep a line whole in memory."""

ERROR_BYTES: Final = 2**16
"""Bytes that are read of an answer that says why a request has failed."""

TAIL: Final = 64
"""Bytes of what came before that are kept to find a terminator that comes in two pieces."""


_received: ContextVar[list[httpx2.Response] | None] = ContextVar("_received", default=None)


@dataclass(slots=True)
class _RequestInConstruction:
    """A request until it is sent."""

    pause: ExitStack
    """The pause of the garbage collector; a long context makes many objects, all of them kept."""
    whole: dict[str, Any] = field(default_factory=dict)
    """By name, the members of its body that the library of the service has not been given."""

    async def trace(self, event: str, _info: object) -> None:
        """End the pause once the body is sent: what there is to collect is looked for meanwhile."""
        if event.endswith("send_request_body.complete"):
            self.pause.close()

    def completed(self, request: httpx2.Request) -> httpx2.Request:
        """Return a request with the members that were held back in its body."""
        if not self.whole:
            return request
        body = to_json({**json.loads(request.content), **self.whole})
        headers = httpx2.Headers(request.headers)
        del headers["content-length"]
        return httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )


_building: ContextVar[_RequestInConstruction | None] = ContextVar("_building", default=None)


@contextmanager
def building_request() -> Iterator[None]:
    """Pause the garbage collector until a client has sent the request that is built meanwhile."""
    with ExitStack() as pause:
        pause.enter_context(without_collection())
        token = _building.set(_RequestInConstruction(pause))
        try:
            yield
        finally:
            _building.reset(token)


def hold_back(resource: Any, name: str) -> None:
    """Have the client that sends what a resource creates put a member into its body, as it is.

    The libraries look through the whole of a conversation, for fields to rename or to encode, and
    find none in what the model layer has made: a second for 10,000 messages.
    """
    create = resource.create

    async def create_without(**params: Any) -> Any:
        building = _building.get()
        assert building is not None, "no request is being built"
        building.whole[name] = params.pop(name)
        return await create(**{name: []}, **params)

    resource.create = create_without


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
        """Send a request with the members of its body that were held back."""
        if (building := _building.get()) is not None:
            request = building.completed(request)
            request.extensions["trace"] = building.trace
        # The libraries set times of their own, or none.
        request.extensions["timeout"] = self.timeout.as_dict()
        response = await super().send(request, **options)
        if (received := _received.get()) is not None:
            received.append(response)
        stream = response.stream
        if not response.is_closed:
            assert isinstance(stream, httpx2.AsyncByteStream)
            is_answer = response.is_success
            pieces = _whole(stream, self._terminator) if is_answer else _beginning(stream)
            response.stream = _AnswerStream(stream, pieces)
        return response


class RequestRecorder(httpx2.AsyncClient):
    """Client that keeps the body of a request instead of sending it."""

    body: Any = None

    async def send(self, request: httpx2.Request, **_options: Any) -> httpx2.Response:
        """Keep the request's body.

        Raises:
            httpx2.ConnectError: always, as nothing is sent.
        """
        if (building := _building.get()) is not None:
            request = building.completed(request)
        self.body = json.loads(await request.aread())
        raise httpx2.ConnectError("not to be sent", request=request)


@dataclass(slots=True)
class _AnswerStream(httpx2.AsyncByteStream):
    """Body of an answer, whose pieces are looked at on their way."""

    stream: httpx2.AsyncByteStream
    pieces: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.pieces

    async def aclose(self) -> None:
        await self.stream.aclose()


async def _beginning(stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
    """Yield the beginning of a body that says why a request has failed."""
    left = ERROR_BYTES
    async for piece in stream:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


async def _whole(
    stream: httpx2.AsyncByteStream, terminator: re.Pattern[bytes] | None
) -> AsyncIterator[bytes]:
    """Yield a body; its end is an error unless the terminator was in it, if there is one."""
    tail = b""
    is_whole = terminator is None
    line = 0
    async for piece in stream:
        begin = piece.rfind(b"\n") + 1
        line = len(piece) - begin if begin else line + len(piece)
        if line > LINE_BYTES:
            raise httpx2.RemoteProtocolError(
                f"a line of the answer has more than {LINE_BYTES:,} bytes"
            )
        if terminator is not None:
            tail += piece
            is_whole = is_whole or terminator.search(tail) is not None
            tail = tail[-TAIL:]
        yield piece
    if not is_whole:
        raise httpx2.RemoteProtocolError("the answer ended before its last event")
