"""HTTP as the server speaks it: what a client does not finish in time is answered and closed."""

from __future__ import annotations

import asyncio
import logging
import os
import socket as sockets
import struct
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from antiphon_kernel.server.connections import CONNECTION, UNIX, TrackedProtocol

_LATE: Final = b"The request was not complete in time: send all of it at once.\n"
_TOO_LATE: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(_LATE), _LATE)
)


_CREDENTIALS: Final = struct.Struct("3i")

_logger: Final = logging.getLogger("antiphon.access")


def peer_user(sock: Any) -> int | None:
    """User id of the process at the other end of a unix socket; None if the system does not say."""
    option = getattr(sockets, "SO_PEERCRED", None)
    if option is None:
        return None
    _, user, _ = _CREDENTIALS.unpack(sock.getsockopt(sockets.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(user)


def is_own_user(user: int | None) -> bool:
    """Return whether a peer is the user of this process.

    Where the system does not say, the mode of the socket and of its folder has decided.
    """
    return user is None or user == os.geteuid()


class HttpProtocol(TrackedProtocol, H11Protocol):
    """A connection that requests come over, until it becomes a WebSocket."""

    _application: ASGIApp

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.via == UNIX:
            user = peer_user(transport.get_extra_info("socket"))
            if not is_own_user(user):
                _logger.warning("user %s tried the unix socket and was dropped", user)
                self.cut()

    @property
    def app(self) -> ASGIApp:
        """The application, told which connection a request came over."""
        # Made anew each time: kept, it would keep the connection from being freed at once.
        return self._run

    @app.setter
    def app(self, application: ASGIApp) -> None:
        self._application = application

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[CONNECTION] = self
        try:
            await self._application(scope, receive, send)
        finally:
            del scope[CONNECTION]  # or all would wait for the garbage collector

    @property
    def is_served(self) -> bool:
        # There is none before the first request, whatever its type says.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def is_incomplete(self) -> bool:
        return self.is_served and self.cycle.more_body

    def drop(self) -> None:
        asked = bool(self.conn.trailing_data[0])
        if self.is_served:
            asked = not self.cycle.response_started
        if asked and not self.transport.get_write_buffer_size():
            self.transport.write(_TOO_LATE)
        super().drop()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self.tracker.discard(self)
        super().handle_websocket_upgrade(event)
