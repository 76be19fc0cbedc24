"""Serving the endpoints on a loopback TCP port and a unix socket, in the running event loop."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket as sockets
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from antiphon_kernel.access import TOKEN_BYTES
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.application import build_application
from antiphon_kernel.server.authentication import Authenticator
from antiphon_kernel.server.connections import TCP, UNIX, Connections, tracked_by
from antiphon_kernel.server.http import HttpProtocol
from antiphon_kernel.server.limits import DEFAULT_SERVER_LIMITS, ServerLimits
from antiphon_kernel.server.origin_check import check_source
from antiphon_kernel.server.peer_credentials import for_own_user
from antiphon_kernel.server.rpc import RpcEndpoint
from antiphon_kernel.server.scope import VIA, hide_token
from antiphon_kernel.server.sync.endpoint import SyncEndpoint
from antiphon_kernel.server.transfers import Transfers
from antiphon_kernel.server.websocket import AcceptQueue, WebSocketProtocol
from antiphon_kernel.types.errors import AntiphonError

HOST: Final = "127.0.0.1"

_SOCKET_PATH_BYTES: Final = 100
"""The system's own limit is 104 or 108 bytes."""

_FAREWELL_SECONDS: Final = 2.0


class _TransportMiddleware:
    """The application as one listener sees it: it knows which transport its requests came over."""

    def __init__(self, application: ASGIApp, via: str) -> None:
        self._application = application
        self._via = via

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[VIA] = self._via
        hide_token(scope)
        application = self._application
        if self._via == TCP:
            try:
                check_source(scope)
            except AntiphonError as error:
                # The answer to a handshake as well, in place of a WebSocket.
                application = JSONResponse({"error": error.as_json()}, 403)
        await application(scope, receive, send)


class Server:
    """The server of a kernel while it listens."""

    def __init__(
        self,
        token: str,
        port: int,
        socket: Path,
        sync_door: SyncEndpoint,
        calls: RpcEndpoint,
        access: Authenticator,
        connections: Connections,
        private_folder: Path | None,
        closing: Callable[[], None],
    ) -> None:
        """`closing` is called when they begin to close."""
        self.token = token
        """The token that the owner shows over TCP."""
        self.port = port
        self.http = f"http://{HOST}:{port}"
        self.sync = f"ws://{HOST}:{port}/sync"
        self.socket = socket
        """The unix socket; in a private folder elsewhere if the asked for path was too long."""
        self._socket_id = _identity(socket)
        self._doorman = AcceptQueue()
        self._sync_door = sync_door
        self._calls = calls
        self._access = access
        self._connections = connections
        self._listeners: list[tuple[asyncio.Server, ServerState]] = []
        self._private_folder = private_folder
        self._closing = closing

    @property
    def connections(self) -> int:
        """Number of connections with a session now."""
        return self._connections.members

    @property
    def strangers(self) -> int:
        """Number of connections without a session: not yet, or not any more."""
        return self._connections.strangers

    @property
    def visits(self) -> int:
        """Number of sessions accepted so far."""
        return self._access.visits

    @property
    def rooms(self) -> int:
        """Number of contexts that have a follower."""
        return len(self._sync_door.server.rooms)

    async def listen(
        self, application: ASGIApp, sock: sockets.socket, via: str, limits: ServerLimits
    ) -> None:
        """Accept connections on a bound socket."""
        config = Config(
            _TransportMiddleware(application, via),
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            http=tracked_by(self._connections, via, HttpProtocol),
            ws=tracked_by(self._connections, via, WebSocketProtocol, doorman=self._doorman),
            ws_max_size=limits.frame,
            ws_per_message_deflate=False,
        )
        config.load()
        state = ServerState()

        kind = config.http_protocol_class
        if sock.family == sockets.AF_UNIX:
            kind = for_own_user(kind)

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = kind(  # type: ignore[call-arg]
                config=config, server_state=state, app_state={}
            )
            return made

        loop = asyncio.get_running_loop()
        if sock.family == sockets.AF_UNIX:
            server = await loop.create_unix_server(protocol, sock=sock, backlog=config.backlog)
        else:
            server = await loop.create_server(protocol, sock=sock, backlog=config.backlog)
        self._listeners.append((server, state))

    async def close(self) -> None:
        """Stop listening, tell every client, wait shortly, then drop who is left."""
        # Once the data folder has been deleted, another kernel's socket may be at the path.
        is_own = _identity(self.socket) == self._socket_id
        for server, _ in self._listeners:
            server.close()
        self._closing()
        if is_own:
            self.socket.unlink(missing_ok=True)
        await asyncio.gather(self._sync_door.server.stop(), self._calls.stop())
        for _, state in self._listeners:
            for connection in tuple(state.connections):
                connection.shutdown()
        tasks = self._tasks()
        if tasks:
            await asyncio.wait(tasks, timeout=_FAREWELL_SECONDS)
        for _, state in self._listeners:
            for connection in tuple(state.connections):
                connection.transport.abort()
        self._connections.close()
        left = self._tasks()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if self._private_folder is not None:
            shutil.rmtree(self._private_folder, ignore_errors=True)

    def _tasks(self) -> set[asyncio.Task[None]]:
        return {task for _, state in self._listeners for task in state.tasks}


async def serve(
    kernel: Kernel,
    *,
    port: int,
    socket: Path,
    limits: ServerLimits = DEFAULT_SERVER_LIMITS,
) -> Server:
    """Start to listen for `kernel`.

    Args:
        port: of the loopback interface; 0 for any free one.
        socket: where the unix socket should be; `Server.socket` says where it is.

    Raises:
        OSError: if the port is taken.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    connections = Connections(limits)
    access = Authenticator(kernel, token, connections, limits)
    sync_door = SyncEndpoint(kernel, access, limits)
    calls = RpcEndpoint(kernel, access, limits)
    application = build_application(kernel, calls, sync_door, Transfers(kernel, access))
    tcp = _bind_tcp(port)
    path, private_folder = _choose_socket_path(socket)
    unix = _bind_unix(path)
    kernel.reached_at = f"ws://{HOST}:{tcp.getsockname()[1]}/sync"
    bound = tcp.getsockname()[1]
    server = Server(
        token,
        bound,
        path,
        sync_door,
        calls,
        access,
        connections,
        private_folder,
        kernel.start_closing,
    )
    await server.listen(application, tcp, TCP, limits)
    await server.listen(application, unix, UNIX, limits)
    return server


def _identity(path: Path) -> tuple[int, int] | None:
    """Two equal ones mean the same file, as long as it is open; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _bind_tcp(port: int) -> sockets.socket:
    # With its protocol named, asyncio turns off the delay of small frames on what it accepts.
    sock = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM, sockets.IPPROTO_TCP)
    try:
        sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


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


def _bind_unix(path: Path) -> sockets.socket:
    path.unlink(missing_ok=True)
    sock = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(str(path))
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(mask)
    sock.setblocking(False)
    return sock
