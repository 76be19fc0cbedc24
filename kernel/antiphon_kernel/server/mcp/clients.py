"""Programs that speak MCP, as the kernel knows them: each with a session of its own while it works.

A request over HTTP is over when it is answered; a program is present from its first edit on until
its session ends, or until it has asked for nothing for a while.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Final, NamedTuple

from antiphon_kernel.access import VIA_MCP
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.resource_feed import ResourceFeed
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.ids import NAME_LENGTH, PrincipalId, SessionId, as_name
from antiphon_kernel.types.records import Actor, Principal

VISIT: Final = "antiphon.visit"
"""The key of the `AuthenticatedSession` of a request in its scope."""

SESSION_HEADER: Final = "mcp-session-id"

_NAMELESS: Final = "mcp-client"

_logger: Final = logging.getLogger("antiphon.mcp")


class _ClientKey(NamedTuple):
    """What tells one program from another."""

    session: str | None
    """Its session of MCP; None in the era without sessions."""
    principal: PrincipalId
    credential: int | None
    within: SessionId | None


@dataclass(eq=False)
class McpClient:
    """One program, and the session in which it acts."""

    actor: Actor
    used: float
    """When it asked for something last, by the clock of the event loop."""
    feeds: dict[str, ResourceFeed] = field(default_factory=dict)
    """By URI, what it has subscribed to in its session."""


class McpClients:
    """The programs at work. Belongs to one event loop."""

    def __init__(self, kernel: Kernel, limits: ServerLimits) -> None:
        self._kernel = kernel
        self._limits = limits
        self._clients: dict[_ClientKey, McpClient] = {}
        self._streams: Counter[str] = Counter()
        """Open streams by the session of MCP, or of the kernel, that they belong to."""
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    async def acting(self, scope: Mapping[str, Any], name: str | None) -> McpClient:
        """Return the program that a request comes from.

        Args:
            name: how it calls itself. Whoever comes as the owner acts under it, as an agent.

        Raises:
            AntiphonError: permission_denied for somebody who has been kicked.
        """
        visit: AuthenticatedSession = scope[VISIT]
        session = dict(scope["headers"]).get(SESSION_HEADER.encode(), b"").decode("latin-1")
        principal = await self._principal(visit, name)
        by = visit.actor
        key = _ClientKey(session or None, principal.id, by.credential, by.within)
        client = self._clients.get(key)
        if client is None:
            self._kernel.access.check_admission(principal)
            actor = self._kernel.open_session(
                principal, VIA_MCP, credential=by.credential, lasts=False, within=by.within
            )
            client = self._clients[key] = McpClient(actor, 0.0)
            self._kernel.sessions.on_dismissal(actor, lambda _: self._end(key))
            self._sweep_later()
        client.used = asyncio.get_running_loop().time()
        return client

    @contextmanager
    def streaming(self, session: str) -> Iterator[None]:
        """Keep the programs of a session for as long as it has a stream open."""
        self._streams[session] += 1
        try:
            yield
        finally:
            self._streams[session] -= 1
            if not self._streams[session]:
                del self._streams[session]
            for key, client in self._clients.items():
                if session in (key.session, client.actor.session):
                    client.used = asyncio.get_running_loop().time()

    async def end_session(self, session: str) -> None:
        """End the programs of a session of MCP that is over."""
        for key in [key for key in self._clients if key.session == session]:
            self._end(key)
        await self._ended()

    async def close(self) -> None:
        """End all of them."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for key in list(self._clients):
            self._end(key)
        await self._ended()

    async def _ended(self) -> None:
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, key: _ClientKey) -> None:
        client = self._clients.pop(key, None)
        if client is None:
            return
        for feed in client.feeds.values():
            feed.close()
        ending = asyncio.create_task(self._kernel.close_session(client.actor), name="end of MCP")
        self._ending.add(ending)
        ending.add_done_callback(self._has_ended)

    def _has_ended(self, ending: asyncio.Task[None]) -> None:
        self._ending.discard(ending)
        if not ending.cancelled() and (error := ending.exception()) is not None:
            _logger.error("the session of a program could not be closed", exc_info=error)

    def _sweep_later(self) -> None:
        if self._sweeping is None:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(self._limits.mcp_idle / 4, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now = asyncio.get_running_loop().time()
        for key, client in list(self._clients.items()):
            idle = self._limits.mcp_session if client.feeds else self._limits.mcp_idle
            is_streaming = key.session in self._streams or client.actor.session in self._streams
            if not is_streaming and now - client.used >= idle:
                self._end(key)
        if self._clients:
            self._sweep_later()

    async def _principal(self, visit: AuthenticatedSession, name: str | None) -> Principal:
        """Return who acts; a name that somebody else has gets a number."""
        principal = visit.actor.principal
        if visit.is_guest or principal.id != self._kernel.owner.id or "as" in visit.query:
            return principal
        base = as_name(re.sub("[^a-z0-9_-]+", "-", (name or "").lower())) or _NAMELESS
        base = base[: NAME_LENGTH - 4].rstrip("-")
        for candidate in chain([base], (f"{base}-{number}" for number in count(2))):
            principal = await self._kernel.principal(candidate, PrincipalKind.AGENT)
            if principal.kind is PrincipalKind.AGENT:
                break
        return principal
