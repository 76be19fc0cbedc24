"""A wire server: answers requests to models over real HTTP on loopback, in the four formats.

It answers from a list that the test fills, or from a function, and keeps what was asked:

    async with WireServer() as server:
        config = ModelConfig("aria", ModelKind.OPENAI_CHAT, "m", base_url=server.base_url(kind))
        server.answers.append(recorded(kind, "parallel-calls"))      # a file of tests/wire/answers
        server.answers.append(answer(kind, Said("Hello"), Called("c1", "shell", '{"a":1}')))
        ...                                                           # see tests/wire/answering.py
        server.requests[0].body["messages"]                           # what was sent

With `server.reply = function`, each request is answered by `function(request)`: a test decides by
what the model was told. Answers of `WireAnswer` may be cut after any byte (`cut`), sent in chunks
that end at any byte (`split`, `bytewise`), with other line ends (`with_crlf`), or fall silent
(`silent`); a chunk of the answer is a chunk of HTTP, so the client reads exactly these pieces.
`request.gone` is set once the client has closed the connection. How much of a request a provider
would have taken from its cache: `PromptCache` in tests/wire/prompt_cache.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from antiphon_kernel.providers import ModelKind
from tests.waiting import until

ANSWERS: Final = Path(__file__).parent / "answers"

FORMATS: Final = (ModelKind.ANTHROPIC, ModelKind.OPENAI, ModelKind.OPENAI_CHAT, ModelKind.GOOGLE)
"""Kinds of models with a wire format of their own."""

STREAMED: Final = {"content-type": "text/event-stream; charset=utf-8"}
JSON: Final = {"content-type": "application/json"}


@dataclass(frozen=True)
class WireAnswer:
    """An answer to one request, and the manner in which it is sent."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: STREAMED)
    splits: Sequence[int] = ()
    """Offsets in the body at which one chunk ends and the next begins."""
    length: int | None = None
    """Bytes after which the connection is cut; None for the whole body."""
    closes: bool = True
    """Whether a cut body ends as a whole one does, instead of breaking the connection."""
    pause: float = 0.0
    """Seconds from one chunk to the next."""
    silence: bool = False
    """Whether the connection stays open without a byte behind what was sent."""

    def split(self, *offsets: int) -> WireAnswer:
        """Return the same answer in chunks that end at these offsets."""
        return replace(self, splits=offsets)

    def bytewise(self) -> WireAnswer:
        """Return the same answer with each byte in a chunk of its own."""
        return replace(self, splits=range(1, len(self.body)))

    def cut(self, length: int, *, closes: bool = False) -> WireAnswer:
        """Return the answer cut after `length` bytes."""
        return replace(self, length=length, closes=closes)

    def silent(self, length: int | None = None) -> WireAnswer:
        """Return an answer that falls silent after `length` bytes, or after all of them."""
        return replace(self, length=length, silence=True)

    def paced(self, events: float) -> WireAnswer:
        """Return the same answer with so many events a second."""
        ends = [match.end() for match in re.finditer(rb"\n\n", self.body)]
        return replace(self, splits=ends, pause=1 / events)

    def with_crlf(self) -> WireAnswer:
        """Return the same answer with lines that end in CR LF."""
        return replace(self, body=self.body.replace(b"\n", b"\r\n"))

    def chunks(self) -> list[bytes]:
        """Return the pieces that are sent."""
        body = self.body[: self.length]
        ends = [0, *(at for at in self.splits if 0 < at < len(body)), len(body)]
        return [body[start:end] for start, end in pairwise(ends) if end > start]


@dataclass
class WireRequest:
    """One request as the server received it."""

    kind: ModelKind | None
    """Wire format by the path; None of another path."""
    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    text: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the client has closed the connection."""

    @property
    def body(self) -> Any:
        """Return the JSON of the body."""
        return json.loads(self.text)


def recorded(kind: ModelKind, name: str) -> WireAnswer:
    """Return an answer of tests/wire/answers: status line, headers, blank line, body."""
    head, _, body = (ANSWERS / kind / f"{name}.http").read_bytes().partition(b"\n\n")
    status, *lines = head.decode().splitlines()
    headers = dict(line.split(": ", 1) for line in lines)
    return WireAnswer(body, int(status), headers)


def recorded_names(kind: ModelKind) -> list[str]:
    """Return the names of the recorded answers in a format."""
    return sorted(path.stem for path in (ANSWERS / kind).glob("*.http"))


class WireServer:
    """Server on a free port of the loopback address; see this module's docstring."""

    def __init__(self) -> None:
        self.answers: list[WireAnswer] = []
        """Answers to come, each given once, in order."""
        self.reply: Callable[[WireRequest], WireAnswer] = self._next_answer
        self.arriving: Callable[[], None] = lambda: None
        """Called once the head of a request is here, before its body is read."""
        self.requests: list[WireRequest] = []
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        """Return the address without a path."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def base_url(self, kind: ModelKind) -> str:
        """Return the address that the configuration of a model of this kind names."""
        openai = kind in {ModelKind.OPENAI, ModelKind.OPENAI_CHAT}
        return f"{self.address}/v1" if openai else self.address

    async def asked(self, count: int = 1) -> WireRequest:
        """Wait for the `count`-th request."""
        await until(lambda: len(self.requests) >= count, f"request {count} at the wire server")
        return self.requests[count - 1]

    def _next_answer(self, request: WireRequest) -> WireAnswer:
        if self.answers:
            return self.answers.pop(0)
        message = f"the test has no answer for request {len(self.requests)}, {request.path}"
        return WireAnswer(json.dumps({"error": {"message": message}}).encode(), 400, JSON)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await self._read(reader)
        self.requests.append(request)
        watching = asyncio.create_task(self._watch(reader, request))
        try:
            answer = self.reply(request)
            await self._send(writer, answer)
            if answer.silence:
                await request.gone.wait()
        finally:
            watching.cancel()

    async def _read(self, reader: asyncio.StreamReader) -> WireRequest:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.arriving()
        first, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in lines)}
        text = await reader.readexactly(int(headers.get("content-length", "0")))
        path = first.split(" ")[1]
        return WireRequest(_format(path), path, headers, text)

    async def _watch(self, reader: asyncio.StreamReader, request: WireRequest) -> None:
        with suppress(ConnectionError):
            await reader.read(1)
        request.gone.set()

    async def _send(self, writer: asyncio.StreamWriter, answer: WireAnswer) -> None:
        reason = HTTPStatus(answer.status).phrase if answer.status != 529 else "Overloaded"
        head = [f"HTTP/1.1 {answer.status} {reason}"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        head += ["transfer-encoding: chunked", "connection: close", "", ""]
        writer.write("\r\n".join(head).encode("latin-1"))
        began = time.monotonic()
        for number, chunk in enumerate(answer.chunks()):
            if answer.pause:
                await writer.drain()
                await asyncio.sleep(began + number * answer.pause - time.monotonic())
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
        if answer.silence:
            return
        if answer.length is None or answer.closes:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


def _format(path: str) -> ModelKind | None:
    plain = path.partition("?")[0]
    ends = {
        "/messages": ModelKind.ANTHROPIC,
        "/responses": ModelKind.OPENAI,
        "/chat/completions": ModelKind.OPENAI_CHAT,
        ":streamGenerateContent": ModelKind.GOOGLE,
    }
    return next((kind for end, kind in ends.items() if plain.endswith(end)), None)
