"""The connections of all listeners, and how long one may stay open without authenticating.

A connection that no session uses is a stranger, whether it is new or its session has ended: it has
to authenticate before a deadline. Strangers on TCP are limited in number apart from the connections
that have a session, so that they can neither fill a listener nor keep a kernel alive.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from antiphon_kernel.server.limits import ServerLimits

TCP: Final = "tcp"
UNIX: Final = "unix"

# Keys that our own server adds to ASGI scopes.

VIA: Final = "antiphon.via"
"""The key of the transport a request came over, `unix` or `tcp`."""

TOKEN: Final = "antiphon.token"
"""The key of `?token=` in the address of a request; absent if it showed none."""

GUARD: Final = "antiphon.guard"
"""The `ConnectionGuard` of a WebSocket or of a request."""

CONNECTION: Final = "antiphon.connection"
"""The `TrackedProtocol` that a WebSocket or request came over."""

_YOUNG_SECONDS: Final = 1.0
"""A stranger is not dropped for a newer one before this, so that many clients can come at once."""

_AT_ONCE: Final = 4
"""How many times as many strangers as are allowed may come at once."""


class TrackedProtocol(asyncio.Protocol):
    """One connection of a server, which knows whether a session uses it."""

    tracker: Connections
    via: str
    transport: asyncio.Transport
    is_peer = False
    """Whether another kernel has made it."""
    has_session = False
    since = 0.0
    """From when on it has had a session, or none, by the loop's clock."""
    unsent = 0
    """Bytes that the client had not read at the last look."""
    unsent_since = 0.0
    """When that number changed last."""

    @property
    def is_served(self) -> bool:
        """Return whether a complete request is not answered yet."""
        raise NotImplementedError

    @property
    def is_incomplete(self) -> bool:
        """Return whether the rest of a request is still to come."""
        return False

    def begin_session(self) -> None:
        """Mark the connection as authenticated."""
        self.tracker.admit(self)

    def send_now(self, message: bytes) -> bool:
        """Send a whole WebSocket message, with its header; False if it would have to wait."""
        return False

    def cut(self) -> None:
        """Drop the connection at once, with whatever is not sent yet."""
        self.transport.abort()

    def drop(self) -> None:
        """Close the connection without waiting for the client."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.tracker.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.tracker.discard(self)
        super().connection_lost(exc)


class Connections:
    """Every open connection of a kernel's listeners. Belongs to one event loop."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._open = set[TrackedProtocol]()
        self._pause = min(1.0, limits.handshake / 4)
        self._sweeping = self._loop.call_later(self._pause, self._sweep)

    @property
    def members(self) -> int:
        """Return how many connections have a session."""
        return sum(one.has_session for one in self._open)

    @property
    def strangers(self) -> int:
        """Return how many connections have no session."""
        return len(self._open) - self.members

    @property
    def is_full(self) -> bool:
        """Return whether TCP takes no further clients; the unix socket always does."""
        members = (one for one in self._open if one.has_session and one.via == TCP)
        return sum(not one.is_peer for one in members) >= self._limits.connections

    def close(self) -> None:
        """Stop looking after the connections."""
        self._sweeping.cancel()

    def add(self, one: TrackedProtocol) -> None:
        """Take note of a new connection, at the expense of an idle stranger if there are many."""
        one.since = self._loop.time()
        self._open.add(one)
        if one.via == TCP:
            self._make_room()

    def discard(self, one: TrackedProtocol) -> None:
        """Forget a connection that is closed."""
        self._open.discard(one)

    def admit(self, one: TrackedProtocol) -> None:
        """Count a connection among those that have a session."""
        one.has_session, one.since = True, self._loop.time()

    def release(self, one: TrackedProtocol) -> None:
        """Count a connection among the strangers again."""
        one.has_session, one.since = False, self._loop.time()

    def _make_room(self) -> None:
        strangers = [one for one in self._open if one.via == TCP and not one.has_session]
        if len(strangers) <= self._limits.strangers:
            return
        strangers.sort(key=lambda one: one.since)
        crowded = len(strangers) > _AT_ONCE * self._limits.strangers
        old = self._loop.time() - _YOUNG_SECONDS
        for one in strangers:
            if one.since > old and not crowded:
                return
            if not one.is_served and not one.transport.get_write_buffer_size():
                self._drop(one)
                return
        if crowded:
            self._drop(strangers[0])

    def _sweep(self) -> None:
        self._sweeping = self._loop.call_later(self._pause, self._sweep)
        now, limits = self._loop.time(), self._limits
        for one in tuple(self._open):
            stalled = self._is_stalled(
                one, now, limits.stalled if one.has_session else limits.handshake
            )
            if one.has_session:
                is_late = one.is_incomplete and one.since < now - limits.body
            else:
                is_idle = not one.unsent and not one.is_served
                is_late = is_idle and one.since < now - limits.handshake
            if stalled or is_late:
                self._drop(one)

    def _is_stalled(self, one: TrackedProtocol, now: float, patience: float) -> bool:
        unsent = one.transport.get_write_buffer_size()
        if unsent != one.unsent:
            one.unsent, one.unsent_since = unsent, now
        return bool(unsent) and one.unsent_since < now - patience

    def _drop(self, one: TrackedProtocol) -> None:
        # What is dropped is no candidate any more, also before the transport has said so.
        self._open.discard(one)
        one.drop()


def tracked_by(
    connections: Connections, via: str, protocol: type[TrackedProtocol], **more: Any
) -> type[TrackedProtocol]:
    """Return the protocol of connections that are counted in `connections` as coming over `via`."""
    return type(protocol.__name__, (protocol,), {"tracker": connections, "via": via, **more})
