"""Serving the endpoints on a loopback TCP port and a unix socket, in the running event loop."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import shutil
import socket as sockets
import stat
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn import Config
from uvicorn.server import ServerState

from antiphon_kernel.access import TOKEN_BYTES
from antiphon_kernel.cluster import Ownership
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import Authenticator, check_source
from antiphon_kernel.server.connection_guard import ConnectionGuard, HttpGuard
from antiphon_kernel.server.connections import (
    CONNECTION,
    TCP,
    TOKEN,
    UNIX,
    VIA,
    Connections,
    tracked_by,
)
from antiphon_kernel.server.forwarding import Forwarder
from antiphon_kernel.server.http import HttpProtocol
from antiphon_kernel.server.limits import DEFAULT_SERVER_LIMITS, ServerLimits
from antiphon_kernel.server.mcp.endpoint import METADATA_PATH, PATH, McpEndpoint
from antiphon_kernel.server.peers import HAND_OVER_PATH
from antiphon_kernel.server.rpc import MESSAGE_TOOLS, RequestEndpoint, RpcEndpoint, refusal
from antiphon_kernel.server.sync.endpoint import SyncEndpoint
from antiphon_kernel.server.websocket import AcceptQueue, WebSocketProtocol
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote, truncate

HOST: Final = "127.0.0.1"

_SOCKET_PATH_BYTES: Final = 100
"""The system's own limit is 104 or 108 bytes."""

_FAREWELL_SECONDS: Final = 2.0


class Server:
    """The endpoints of a kernel, and its listeners once it has been started."""

    def __init__(self, kernel: Kernel, limits: ServerLimits = DEFAULT_SERVER_LIMITS) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        """The token that the owner shows over TCP."""
        self.port = 0
        self.socket: Path
        """The unix socket; in a private folder elsewhere if the asked for path was too long."""
        self._kernel = kernel
        self._limits = limits
        self.connections = Connections(limits)
        self._doorman = AcceptQueue()
        self.access = Authenticator(kernel, self.token, self.connections, limits)
        self._forwarder = Forwarder(kernel)
        self.replicas = SyncEndpoint(kernel, self.access, self._forwarder, limits)
        self._calls = RpcEndpoint(kernel, self.access, self._forwarder, limits)
        self.mcp = McpEndpoint(kernel, self.access, self._forwarder, limits)
        self._is_ending = False
        self._listeners: list[asyncio.Server] = []
        self._served = ServerState()
        self._private_folder: Path | None = None

    @property
    def http(self) -> str:
        """Return the address for requests over TCP."""
        return f"http://{HOST}:{self.port}"

    @property
    def sync(self) -> str:
        """Return the address for replicas over TCP."""
        return f"ws://{HOST}:{self.port}/sync"

    @property
    def routes(self) -> list[Route | WebSocketRoute]:
        """Return every endpoint: documents, tool calls, exports and imports, and `/health`."""
        calls, answers = self._calls, partial(RequestEndpoint, self.access, self._forwarder)

        async def health(_: Request) -> Response:
            cluster = self._kernel.cluster
            can_write = cluster is None or (cluster.ownership.is_live and not self._is_ending)
            return JSONResponse({"kernel": self._kernel.id}, 200 if can_write else 503)

        hand_over = WebSocketRoute(f"/{'/'.join(HAND_OVER_PATH)}/{{root:int}}", self._hand_over)
        return [
            WebSocketRoute("/sync/{context}", self.replicas),
            WebSocketRoute("/call", calls.socket),
            Route("/call/{tool:path}", answers(calls.post), methods=["POST"]),
            *(Route(path, answers(calls.message), methods=[one]) for one, path in MESSAGE_TOOLS),
            Route("/export", answers(calls.export), methods=["GET"]),
            Route("/import", answers(calls.import_), methods=["POST"]),
            Route(PATH, self.mcp, methods=["GET", "POST", "DELETE"]),
            *(Route(METADATA_PATH + one, self.mcp.metadata) for one in ("", PATH)),
            Route("/health", health),
            *([hand_over] if self._kernel.cluster is not None else ()),
        ]

    async def _hand_over(self, socket: WebSocket) -> None:
        """Let another kernel of the cluster have a tree of forks."""
        answer: dict[str, Any] = {}
        await socket.accept()
        try:
            self.access.check_peer(socket.headers)
            await self._kernel.open_contexts.hand_over(socket.path_params["root"])
        except AntiphonError as error:
            answer["error"] = error.as_json()
        with suppress(WebSocketDisconnect):
            await socket.send_json(answer)
            await socket.close()

    async def start(
        self, *, port: int, socket: Path, listen: tuple[str, int] | None = None
    ) -> Server:
        """Listen on a loopback port and a unix socket.

        Args:
            port: of the loopback interface; 0 for any free one.
            socket: where the unix socket should be; `Server.socket` says where it is.
            listen: host and port for other kernels, and for clients with a token; 0 for any port.

        Raises:
            OSError: if a port is taken, or the host is not this machine.
        """
        handlers = {404: _not_here, 405: _not_so}
        application = Starlette(exception_handlers=handlers, routes=self.routes)
        # What comes to another path is refused: a redirected call would be answered by no error.
        application.router.redirect_slashes = False
        # With its protocol named, asyncio turns off the delay of small frames on what it accepts.
        tcp = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM, sockets.IPPROTO_TCP)
        tcp.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        _bind(tcp, (HOST, port))
        self.socket, self._private_folder = _choose_socket_path(socket)
        self.socket.unlink(missing_ok=True)
        unix = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        _bind(unix, str(self.socket))
        self._socket_id = _identity(self.socket)
        self.port = tcp.getsockname()[1]
        self._kernel.reached_at = self.sync
        await self._listen(application, tcp, TCP)
        await self._listen(application, unix, UNIX)
        if self._kernel.cluster is not None:
            await self._join(self._kernel.cluster.ownership, application, listen or (HOST, 0))
        return self

    async def _join(
        self, ownership: Ownership, application: ASGIApp, listen: tuple[str, int]
    ) -> None:
        """Be reached by the other kernels, and reach them."""
        settle = self._kernel.journal.settle  # the first kernel of a database makes the secret
        secret = await settle("cluster_secret", secrets.token_urlsafe(TOKEN_BYTES))
        self._forwarder.secret = secret
        self.access.trust_peers(secret)
        ownership.ask_owner = self._forwarder.ask_owner
        listener, address = _bind_listener(*listen)
        await self._listen(application, listener, TCP, is_public=True)
        await ownership.listen_at(address)

    async def _listen(
        self, application: ASGIApp, sock: sockets.socket, via: str, *, is_public: bool = False
    ) -> None:
        """Accept connections on a bound socket."""
        config = Config(
            _over(via, application, is_public=is_public),
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            http=tracked_by(self.connections, via, HttpProtocol),
            ws=tracked_by(self.connections, via, WebSocketProtocol, doorman=self._doorman),
            ws_max_size=self._limits.frame,
            ws_per_message_deflate=False,
        )
        config.load()
        loop, protocol = asyncio.get_running_loop(), config.http_protocol_class
        make = partial(protocol, config=config, server_state=self._served, app_state={})  # type: ignore[call-arg]
        listen = loop.create_server if via == TCP else loop.create_unix_server
        self._listeners.append(await listen(make, sock=sock, backlog=config.backlog))

    async def close(self) -> None:
        """Stop listening, tell every client, wait shortly, then drop who is left."""
        # Once the data folder has been deleted, another kernel's socket may be at the path.
        is_own = _identity(self.socket) == self._socket_id
        self._is_ending = True
        self._kernel.start_closing()  # subscribers hear of the end, not of contexts that move
        # Other kernels reach what is still here, and ask for it, until all is handed over.
        await self._kernel.open_contexts.hand_over_all()
        for server in self._listeners:
            server.close()
        if is_own:
            self.socket.unlink(missing_ok=True)
        self._kernel.wake_waiters()  # which came while contexts were handed over
        await asyncio.gather(self.replicas.stop(), self._calls.stop(), self.mcp.stop())
        for connection in tuple(self._served.connections):
            connection.shutdown()
        if self._served.tasks:
            await asyncio.wait(self._served.tasks, timeout=_FAREWELL_SECONDS)
        for connection in tuple(self._served.connections):
            connection.transport.abort()
        self.connections.close()
        left = tuple(self._served.tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if self._private_folder is not None:
            shutil.rmtree(self._private_folder, ignore_errors=True)


def _bind_listener(host: str, port: int) -> tuple[sockets.socket, str]:
    """Bind a socket for other kernels; return it with the URL at which they reach it.

    That has the name of the machine if the host means all of its addresses.
    """
    ((family, kind, protocol, _, address), *_) = sockets.getaddrinfo(
        host, port, type=sockets.SOCK_STREAM
    )
    listener = sockets.socket(family, kind, protocol)
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    _bind(listener, address)
    name = sockets.gethostname() if ipaddress.ip_address(address[0]).is_unspecified else host
    shown = f"[{name}]" if ":" in name else name
    return listener, f"http://{shown}:{listener.getsockname()[1]}"


def _over(via: str, application: ASGIApp, *, is_public: bool) -> ASGIApp:
    """Return an application as one listener sees it: it knows over which transport one comes, and
    has a `ConnectionGuard` in the scope of each connection.
    """

    async def received(scope: Scope, receive: Receive, send: Send) -> None:
        scope[VIA] = via
        _hide_token(scope)
        try:
            if via == TCP:
                check_source(scope, is_public=is_public)
        except AntiphonError as error:
            # The answer to a handshake as well, in place of a WebSocket.
            await JSONResponse({"error": error.as_json()}, 403)(scope, receive, send)
        else:
            kind = ConnectionGuard if scope["type"] == "websocket" else HttpGuard
            await kind(receive, send, scope[CONNECTION]).serve(application, scope)

    return received


def _hide_token(scope: Scope) -> None:
    """Take the token out of the address, so that whatever logs an address logs no token."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    tokens = [value for name, value in query if name == "token"]
    if tokens:
        scope[TOKEN] = tokens[-1]
        kept = urlencode([pair for pair in query if pair[0] != "token"])
        scope["query_string"] = kept.encode("ascii")


def _not_here(request: Request, _: Exception) -> Response:
    said = f"Nothing answers at {quote(request.url.path)}: POST the parameters of a tool to"
    path = truncate(request.url.path)
    return refusal(AntiphonError(ErrorCode.UNKNOWN_TOOL, f"{said} /call/TOOL.", tool=path))


def _not_so(request: Request, error: Exception) -> Response:
    headers = error.headers if isinstance(error, HTTPException) else None
    allowed = (headers or {}).get("Allow", "")
    refused = invalid_params(
        f"{quote(request.url.path)} does not take {truncate(request.method)}: use {allowed}.",
        allowed=sorted(allowed.split(", ")),
    )
    return JSONResponse({"error": refused.as_json()}, 405, headers)


def _identity(path: Path) -> tuple[int, int] | None:
    """Two equal ones mean the same file, as long as it is open; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _bind(sock: sockets.socket, address: Any) -> None:
    """Bind a socket; one with a path is this user's alone."""
    mask = os.umask(0o177)
    try:
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(mask)
    sock.setblocking(False)


def _choose_socket_path(wanted: Path) -> tuple[Path, Path | None]:
    """Return the socket's path, and the folder made for it if it cannot be where wanted.

    It has to be in a folder of this user alone, under a path that the system accepts.
    """
    folder = wanted.parent
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True)
    private = not stat.S_IMODE(folder.stat().st_mode) & 0o077
    if private and len(os.fsencode(wanted)) <= _SOCKET_PATH_BYTES:
        return wanted, None
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    for base in (runtime, tempfile.gettempdir(), "/tmp"):
        if base and Path(base).is_dir() and len(os.fsencode(base)) <= _SOCKET_PATH_BYTES - 40:
            made = Path(tempfile.mkdtemp(prefix="antiphon-", dir=base))
            return made / "kernel.sock", made
    raise OSError(f"there is no folder whose path is short enough for a unix socket ({wanted})")
