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
from antiphon_kernel.types.errors import AntiphonError

JOIN_SECONDS: Final = 10.0
"""How long a page may take to connect, and then to show its invitation."""

REFUSED_SECONDS: Final = 1.0
"""How long whoever is refused waits for the answer."""

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
        self,
        context: SessionContext,
        connection: ServerConnection,
        token: str,
        secret: str,
        before: WebSession | None,
    ) -> None:
        """`before` is the last session of the browser whose secret this is."""
        super().__init__(context)
        self.terminal = TERMINAL
        self.environment = {b"COLORTERM": b"truecolor"}
        self._connection = connection
        self._token = token
        self._secret = secret
        self._before = before
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._output: asyncio.Queue[bytes | str | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Talk with the page until it has gone or the session is over."""
        self.begin()
        tasks = [asyncio.create_task(one) for one in (self._receive(), self._send())]
        await self._connection.wait_closed()
        for task in tasks:
            task.cancel()
        self.connection_lost(None)
        await self.wait()

    async def admit(self) -> OpenedSession:
        """Take the place of the session that the same browser has open, once that has ended."""
        if self._before is not None:
            self._before.dismiss("You have opened this in another window.")
            await self._before.wait()
            self._before = None
        try:
            return await self.open(invitation=self._token, client=self._secret)
        except AntiphonError:
            await asyncio.sleep(REFUSED_SECONDS)
            raise

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


class _WebServer:
    """The page, and everybody who has it open. Belongs to one event loop."""

    def __init__(self, context: SessionContext, url: str | None) -> None:
        self._context = context
        self._by_browser: dict[str, WebSession] = {}
        """The last session of each browser, by the browser's secret."""
        self._names = ("localhost", socket.gethostname().lower(), urlsplit(url or "").hostname)
        self._files = {
            path: (kind, gzip.compress(file.read_bytes())) for path, (kind, file) in _FILES.items()
        }

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request that is none for a session, or comes from elsewhere.

        A page of another origin says so in `Origin`, and a name that somebody else has pointed at
        this machine is in `Host`.
        """
        host, path = request.headers.get("Host", ""), urlsplit(request.path).path
        origin = request.headers.get("Origin")
        if not self._is_own(host) or (origin is not None and urlsplit(origin).netloc != host):
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

    def _is_own(self, host: str) -> bool:
        """Return whether a host is named as this machine is, or by numbers, which are nobody's."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._names or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    async def serve(self, connection: ServerConnection) -> None:
        """Serve a page from its first message on, until it has gone or its session is over."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(JOIN_SECONDS):
                first = _parsed(await connection.recv())
            match first:
                case ["join", str(token), str(secret)] if 16 <= len(secret) <= 200:
                    before = self._by_browser.get(secret)
                    session = WebSession(self._context, connection, token[:200], secret, before)
                    self._by_browser[secret] = session
                    await session.serve()
                    if self._by_browser.get(secret) is session:
                        del self._by_browser[secret]


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def listen(context: SessionContext, options: HostOptions) -> HostListener:
    """Listen for pages.

    Raises:
        OSError: if the port is taken, or there is no such interface.
    """
    host = _WebServer(context, options.url)
    server = await serve(
        host.serve,
        options.bind,
        options.port,
        process_request=host.answer,
        open_timeout=JOIN_SECONDS,
        max_queue=1,
        compression=None,
        ping_interval=15,
        ping_timeout=30,
    )
    return HostListener(server.sockets[0].getsockname()[1], lambda: server.close(False))
