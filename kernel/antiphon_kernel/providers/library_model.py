"""Model of a service, asked through pydantic-ai, and the HTTP clients that this sends through."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Final

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_json

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.providers.events import End, ErrorKind, StopReason, TurnEvent
from antiphon_kernel.providers.library_events import (
    EventReader,
    library_messages,
    provider_error,
    request_parameters,
)
from antiphon_kernel.providers.model_config import ModelConfig
from antiphon_kernel.providers.provider import ModelPrompt
from antiphon_kernel.types.frozen_json import JsonObject

CONNECTING: Final = 15.0
"""Seconds for a connection, and for what is sent over it."""

LINE_BYTES: Final = 16 * 2**20
"""Most bytes of one line of an answer: the libraries keep a line whole in memory."""

ERROR_BYTES: Final = 2**16
"""Bytes that are read of an answer that says why a request has failed."""

TAIL: Final = 64
"""Bytes of what came before that are kept to find a terminator that comes in two pieces."""

tls_context = cache(httpx2.create_ssl_context)
"""Returns the one TLS context, also of clients that a library only opens: each takes 50 ms."""


@dataclass(slots=True)
class _RequestInConstruction:
    """A request until it is sent."""

    whole: dict[str, Any] = field(default_factory=dict)
    """By name, the members of its body that the library of the service has not been given."""
    received: list[httpx2.Response] = field(default_factory=list)
    """Responses to it. Whoever is to stop closes them: not every library does that before its
    generators are collected."""
    is_recorded: bool = False
    """Its body is kept, and it is not sent."""
    body: Any = None

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
def building_request() -> Iterator[_RequestInConstruction]:
    """Let a client know of the request that is built meanwhile."""
    building = _RequestInConstruction()
    token = _building.set(building)
    try:
        yield building
    finally:
        _building.reset(token)


def hold_back(
    resource: Any,
    name: str,
    method: str = "create",
    written: Callable[[Any], Any] = list,
    stand_in: Sequence[Any] = (),
) -> None:
    """Have the client that sends what a resource creates put a member into its body, as it is.

    The libraries look through the whole of a conversation, for fields to rename or to encode, and
    find none in what the model layer has made: one to two seconds for 10,000 messages.

    Args:
        written: makes of the member what stands in the body.
        stand_in: is given to the library instead.
    """
    create = getattr(resource, method)

    async def create_without(**params: Any) -> Any:
        building = _building.get()
        assert building is not None, "no request is being built"
        building.whole[name] = written(params.pop(name))
        return await create(**{name: list(stand_in)}, **params)

    setattr(resource, method, create_without)


class ServiceClient(httpx2.AsyncClient):
    """Client for one provider; takes an answer that ends without its terminator for a cut one."""

    def __init__(self, silence: float, terminator: re.Pattern[bytes] | None = None) -> None:
        timeout = httpx2.Timeout(CONNECTING, read=silence)
        super().__init__(verify=tls_context(), timeout=timeout, follow_redirects=True)
        self._terminator = terminator

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request with the members of its body that were held back."""
        if (building := _building.get()) is not None:
            request = building.completed(request)
            if building.is_recorded:
                building.body = json.loads(await request.aread())
                raise httpx2.ConnectError("not to be sent", request=request)
        # The libraries set times of their own, or none.
        request.extensions["timeout"] = self.timeout.as_dict()
        response = await super().send(request, **options)
        if building is not None:
            building.received.append(response)
        stream = response.stream
        if not response.is_closed:
            assert isinstance(stream, httpx2.AsyncByteStream)
            is_answer = response.is_success
            pieces = _whole(stream, self._terminator) if is_answer else _beginning(stream)
            response.stream = _AnswerStream(stream, pieces)
        return response


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


NO_KEY = "no-key"
"""Sent to a server of one's own that needs none; the libraries insist on having one."""


class LibraryModel(ABC):
    """Model of one kind; a subclass says which model of the library it is, and its settings."""

    terminator: ClassVar[Any] = None
    """Pattern of the bytes without which an answer is cut; None where the library sees to it."""

    def __init__(self, config: ModelConfig, silence: float) -> None:
        self.config = config
        self._client = ServiceClient(silence, self.terminator)
        self._model = self.open(self._client, config.key.value if config.key else NO_KEY)

    @abstractmethod
    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model, which sends through `client` and never sends twice."""

    @abstractmethod
    def settings(self, prompt: ModelPrompt) -> ModelSettings:
        """Return what this kind of model is told beside the prompt."""

    def marks(self, prompt: ModelPrompt) -> Sequence[BlockPosition] | None:
        """Return the content blocks that are marked for the cache; None if there are no marks."""
        return None

    async def stream(self, prompt: ModelPrompt) -> AsyncGenerator[TurnEvent, None]:
        """Yield the events of one round."""
        reader = EventReader(self.config)
        try:
            async with AsyncExitStack() as stack:
                with building_request() as building:
                    stream = await stack.enter_async_context(self._request(prompt))
                for response in building.received:
                    stack.push_async_callback(response.aclose)
                events = await stack.enter_async_context(aclosing(reader.read(stream)))
                async for event in events:
                    yield event
        # The libraries raise errors of their own, of each other's, and of Python for odd answers.
        except Exception as error:  # noqa: BLE001
            failed = provider_error(error)
            if failed.kind is ErrorKind.UNREACHABLE and reader.has_content:
                yield End(StopReason.TRUNCATED)
                return
            if self.config.key is not None and self.config.key.value:
                masked = failed.message.replace(self.config.key.value, "(key)")
                failed = replace(failed, message=masked)
            yield failed

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def payload(self, prompt: ModelPrompt) -> JsonObject:
        """Return the body that `stream` would send."""
        with building_request() as building:
            building.is_recorded = True
            try:
                async with self._request(prompt):
                    pass
            except Exception:
                if building.body is None:
                    raise
            return JsonObject(building.body)

    def _request(self, prompt: ModelPrompt) -> Any:
        return model_request_stream(
            self._model,
            library_messages(prompt, self.config, self._model.system, self.marks(prompt)),
            model_settings=self.settings(prompt),
            model_request_parameters=request_parameters(prompt),
            instrument=False,
        )
