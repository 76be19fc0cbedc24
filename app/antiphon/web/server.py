"""The web server: the page with its terminal, and a session for each WebSocket of one.

A page speaks the protocol of textual-serve: it sends lists as JSON (`["stdin", TEXT]`, `["resize",
{"width", "height"}]`, `["ping", WORD]`) and is sent bytes for its terminal. What is said besides
is ours: the first message is `["join", TOKEN, SECRET]`, and before a session ends other than by the
loss of its connection comes `["over", SENTENCE]`, or nothing if the guest has left the app.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
import socket
from contextlib import suppress
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from antiphon.hosts.host import HostListener, HostOptions
from antiphon.hosts.host_address import is_loopback
from antiphon.hosts.kernel_link import OpenedSession
from antiphon.hosts.session import TERMINAL, GuestSession, SessionContext
from antiphon.time_format import format_relative
from antiphon_kernel.types.errors import AntiphonError

JOIN_SECONDS: Final = 10.0
"""How long a page may take to connect, and then to show its invitation."""

REFUSED_SECONDS: Final = 1.0
"""How long whoever is refused waits for the answer."""

STRANGERS: Final = 40
"""Pages that have not been let in; of more, the oldest is dropped."""

MESSAGE_BYTES: Final = 1_000_000
"""Length of a message; pages send longer pastes in pieces."""

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; font-src 'self';"
    " style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""The terminal makes its styles by script."""

_TERMINAL: Final = files("textual_serve") / "static"
_OURS: Final = files("antiphon.web")
_FILES: Final = {
    "/": ("text/html; charset=utf-8", _OURS / "page.html"),
    "/page.js": ("text/javascript", _OURS / "page.js"),
    "/textual.js": ("text/javascript", _TERMINAL / "js/textual.js"),
    "/xterm.css": ("text/css", _TERMINAL / "css/xterm.css"),
    "/font.ttf": ("font/ttf", _TERMINAL / "fonts/RobotoMono-VariableFont_wght.ttf"),
    "/italic.ttf": ("font/ttf", _TERMINAL / "fonts/RobotoMono-Italic-VariableFont_wght.ttf"),
}


class WebSession(GuestSession):
    """A session of a page."""

    def __init__(
        self, host: _WebHost, connection: ServerConnection, token: str, secret: str
    ) -> None:
        """`secret` is that of the browser, by which the kernel knows the guest again."""
        super().__init__(host.context)
        self.terminal = TERMINAL
        self.environment = {b"COLORTERM": b"truecolor"}
        self._host = host
        self._connection = connection
        self._token = token
        self._secret = secret
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._output: asyncio.Queue[bytes | str | None] = asyncio.Queue()

    async def admit(self) -> None:
        """Take the place of the session that the same browser has open, once that has ended."""
        before = self._host.by_browser.get(self._secret)
        self._host.by_browser[self._secret] = self
        if before is not None:
            before.dismiss("You have opened this in another window.")
            await before.wait()

    async def open(self) -> OpenedSession:
        try:
            opened = await self.context.link.open(invitation=self._token, client=self._secret)
        except AntiphonError:
            await asyncio.sleep(REFUSED_SECONDS)
            raise
        self._host.strangers.pop(self._connection, None)
        return opened

    async def serve(self) -> None:
        """Talk with the page until it has gone or the session is over."""
        self.begin()
        tasks = [asyncio.create_task(one) for one in (self._receive(), self._send())]
        await self._connection.wait_closed()
        for task in tasks:
            task.cancel()
        self.connection_lost(None)
        await self.wait()
        if self._host.by_browser.get(self._secret) is self:
            del self._host.by_browser[self._secret]

    async def _receive(self) -> None:
        with suppress(ConnectionClosed):
            async for message in self._connection:
                match _parsed(message):
                    case ["stdin", str(typed)]:
                        self.take_input(typed.encode("utf-8", "replace"))
                    case ["resize", {"width": int(width), "height": int(height)}]:
                        self.resize(width, height)
                    case ["ping", str(word)]:
                        self._output.put_nowait(json.dumps(["pong", word]))
                await self._may_read.wait()

    async def _send(self) -> None:
        with suppress(ConnectionClosed):
            while (data := await self._output.get()) is not None:
                await self._connection.send(data)
                if self._output.empty():
                    self.resume_writing()
            await self._connection.close()

    def write(self, data: bytes, *, is_error: bool = False) -> None:
        self._output.put_nowait(data)
        self.pause_writing()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def say(self, text: str) -> None:
        self._output.put_nowait(json.dumps(["over", format_relative(text)]))

    def close(self, code: int) -> None:
        self._output.put_nowait(None)


class _WebHost:
    """Everybody who has the page open. Belongs to one event loop."""

    def __init__(self, context: SessionContext, options: HostOptions) -> None:
        self.context = context
        self.strangers: dict[ServerConnection, None] = {}
        self.by_browser: dict[str, WebSession] = {}
        """The last session of each browser, by the browser's secret."""
        self._names = {"localhost", urlsplit(options.url or "").hostname}
        if not is_loopback(options.bind):
            self._names.add(socket.gethostname().lower())
        self._files = {
            path: (kind, gzip.compress(file.read_bytes())) for path, (kind, file) in _FILES.items()
        }

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request that is none for a session, or must not come to one.

        A page of another origin says so in `Origin`, and a name that somebody else has pointed at
        this machine is in `Host`. An address of numbers is nobody's.
        """
        host, path = request.headers.get("Host", ""), urlsplit(request.path).path
        if not self._is_own(host):
            return connection.respond(
                HTTPStatus.FORBIDDEN,
                "This page is not served under this name: antiphon share --web --url names it.\n",
            )
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return connection.respond(
                HTTPStatus.FORBIDDEN, "Pages from another address are not answered.\n"
            )
        if path == "/session":
            return None
        if path not in self._files:
            return connection.respond(HTTPStatus.NOT_FOUND, "There is only one page here: /\n")
        kind, body = self._files[path]
        headers = {"Content-Type": kind, "Content-Encoding": "gzip", "Connection": "close"}
        length = {"Content-Length": str(len(body))}
        return Response(HTTPStatus.OK, "OK", Headers(headers | length | _HEADERS), body)

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
            return name in self._names or ipaddress.ip_address(name or "") is not None
        except ValueError:
            return False

    async def serve(self, connection: ServerConnection) -> None:
        """Serve a page from its first message on, until it has gone or its session is over."""
        self.strangers[connection] = None
        if len(self.strangers) > STRANGERS:
            next(iter(self.strangers)).transport.abort()
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                first = _parsed(await connection.recv())
            match first:
                case ["join", str(token), str(secret)] if 16 <= len(secret) <= 200:
                    await WebSession(self, connection, token[:200], secret).serve()
        except (TimeoutError, ConnectionClosed):
            pass
        finally:
            self.strangers.pop(connection, None)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def listen(context: SessionContext, options: HostOptions, port: int) -> HostListener:
    """Listen for pages.

    Raises:
        OSError: if the port is taken, or there is no such interface.
    """
    host = _WebHost(context, options)
    server: Server = await serve(
        host.serve,
        options.bind,
        port,
        process_request=host.answer,
        open_timeout=JOIN_SECONDS,
        max_size=MESSAGE_BYTES,
        max_queue=1,
        compression=None,
        server_header=None,
        ping_interval=15,
        ping_timeout=30,
    )
    return HostListener(server.sockets[0].getsockname()[1], lambda: server.close(False))
