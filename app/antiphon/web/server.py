"""The web server: the page with its terminal, and a session for each WebSocket of one.

A page speaks the protocol of textual-serve: it sends lists as JSON (`["stdin", TEXT]`, `["resize",
{"width", "height"}]`, `["ping", WORD]`) and gets bytes for its terminal. Beside that its first
message is `["join", TOKEN, SECRET]`, and it is told with `["over", SENTENCE]` why a session ends.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
import socket
from collections import Counter
from contextlib import suppress
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from antiphon.hosts.host import HostListener
from antiphon.hosts.host_address import HostOptions
from antiphon.hosts.kernel_link import OpenedSession
from antiphon.hosts.session import TERMINAL, GuestSession, SessionContext
from antiphon.time_format import format_relative

JOIN_SECONDS: Final = 10.0
"""How long a page that has connected may take to show its invitation."""

STRANGERS: Final = 64
"""Connections that have shown none; of more, the oldest is dropped."""

SESSIONS: Final = 32
"""Sessions that one link has at a time: whoever has it does not lock out those with another."""

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; font-src 'self';"
    " style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Encoding": "gzip",
    "Cache-Control": "no-cache",
    "Connection": "close",
}
"""The terminal makes its styles by script."""

_STATIC: Final = files("textual_serve") / "static"
_OURS: Final = files("antiphon.web")
_FILES: Final = {
    "/": ("text/html; charset=utf-8", _OURS / "page.html"),
    "/page.js": ("text/javascript; charset=utf-8", _OURS / "page.js"),
    "/textual.js": ("text/javascript; charset=utf-8", _STATIC / "js/textual.js"),
    "/xterm.css": ("text/css", _STATIC / "css/xterm.css"),
    "/font.ttf": ("font/ttf", _STATIC / "fonts/RobotoMono-VariableFont_wght.ttf"),
    "/italic.ttf": ("font/ttf", _STATIC / "fonts/RobotoMono-Italic-VariableFont_wght.ttf"),
}


class WebSession(GuestSession):
    """A session of a page."""

    def __init__(
        self, context: SessionContext, connection: ServerConnection, shown: dict[str, str]
    ) -> None:
        super().__init__(context)
        self.channel = self
        self.terminal = TERMINAL
        self.environment = {b"COLORTERM": b"truecolor"}
        self._connection = connection
        self._shown = shown
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._output: asyncio.Queue[bytes | str | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Talk with the page until it has gone or the session is over."""
        self.session_started()
        tasks = [asyncio.create_task(one) for one in (self._receive(), self._send())]
        await self._connection.wait_closed()
        for task in tasks:
            task.cancel()
        self.connection_lost(None)

    async def admit(self) -> OpenedSession:
        return await self.open(**self._shown)

    async def _receive(self) -> None:
        with suppress(ConnectionClosed):
            async for message in self._connection:
                match _parsed(message):
                    case ["stdin", str(typed)]:
                        self.data_received(typed.encode("utf-8", "replace"))
                    case ["resize", {"width": int(width), "height": int(height)}]:
                        self.terminal_size_changed(width, height)
                    case ["ping", str(word)] if self._output.empty():  # else it hears that
                        self._output.put_nowait(json.dumps(["pong", word]))
                await self._may_read.wait()

    async def _send(self) -> None:
        with suppress(ConnectionClosed):
            while (data := await self._output.get()) is not None:
                await self._connection.send(data)
                if self._output.empty():
                    self.resume_writing()
            await self._connection.close()

    def write(self, data: bytes, datatype: int | None = None) -> None:
        self._output.put_nowait(data)
        self.pause_writing()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def say(self, text: str) -> None:
        self._output.put_nowait(json.dumps(["over", format_relative(text)]))

    def exit(self, status: int) -> None:
        self._output.put_nowait(None)


class _WebServer:
    """The page, and everybody who has it open. Belongs to one event loop."""

    def __init__(self, context: SessionContext, url: str | None) -> None:
        self._context = context
        self.strangers: dict[ServerConnection, None] = {}
        self._sessions = Counter[str]()
        """How many there are, by the link's token."""
        self._names = ("localhost", socket.gethostname().lower(), urlsplit(url or "").hostname)
        self._files = {
            path: (kind, gzip.compress(file.read_bytes())) for path, (kind, file) in _FILES.items()
        }

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request that is none for a session, or comes from elsewhere.

        A page of another origin says so in `Origin`, and a name that somebody else has pointed at
        this machine is in `Host`.
        """
        try:
            path, is_own = urlsplit(request.path).path, self._is_own(request.headers)
        except (LookupError, ValueError):  # a header twice, or an address that is none
            path, is_own = "", False
        if not is_own:
            return connection.respond(
                HTTPStatus.FORBIDDEN,
                "Not served under this name, or to this origin: antiphon share --url names one.\n",
            )
        if path == "/session":
            return None
        if path not in self._files:
            return connection.respond(HTTPStatus.NOT_FOUND, "There is only one page here: /\n")
        kind, body = self._files[path]
        described = {"Content-Type": kind, "Content-Length": str(len(body))}
        return Response(HTTPStatus.OK, "OK", Headers(described | _HEADERS), body)

    def _is_own(self, headers: Headers) -> bool:
        """Return whether the host is named as this machine is, or by numbers, which are nobody's.

        Raises:
            LookupError, ValueError: if it is not.
        """
        host, origin = headers.get("Host", ""), headers.get("Origin")
        name = urlsplit(f"//{host}").hostname or ""
        is_named = name in self._names or bool(ipaddress.ip_address(name))
        return is_named and (origin is None or urlsplit(origin).netloc == host)

    async def serve(self, connection: ServerConnection) -> None:
        """Serve a page from its first message on, until it has gone or its session is over."""
        with suppress(TimeoutError, ConnectionClosed):
            match _parsed(await asyncio.wait_for(connection.recv(), JOIN_SECONDS)):
                case ["join", str(token), str(secret)] if 16 <= len(secret) <= 200:
                    self.strangers.pop(connection, None)
                    await self._open(connection, token[:200], secret)

    async def _open(self, connection: ServerConnection, token: str, secret: str) -> None:
        if self._sessions[token] >= SESSIONS:
            text = f"This link has {SESSIONS} sessions already: close one of them."
            await connection.send(json.dumps(["over", text]))
            return
        self._sessions[token] += 1
        try:
            shown = {"invitation": token, "client": secret}
            await WebSession(self._context, connection, shown).serve()
        finally:
            self._sessions[token] -= 1
            self._sessions += Counter()  # without those that have none


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def listen(context: SessionContext, options: HostOptions) -> HostListener:
    """Listen for pages; raise OSError if the port is taken, or there is no such interface."""
    host = _WebServer(context, options.url)

    class PageConnection(ServerConnection):
        """A connection from its first moment on, when nothing has come yet."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            host.strangers[self] = None
            if len(host.strangers) > STRANGERS:
                oldest = next(iter(host.strangers))
                del host.strangers[oldest]
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            host.strangers.pop(self, None)
            super().connection_lost(exc)

    server = await serve(
        host.serve,
        options.bind,
        options.port,
        process_request=host.answer,
        create_connection=PageConnection,
        max_queue=1,
        compression=None,
        ping_interval=15,
        ping_timeout=30,
    )
    return HostListener(server.sockets[0].getsockname()[1], lambda: server.close(False))
