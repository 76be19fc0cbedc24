"""Programs that speak MCP, as the kernel knows them: each with a session of its own while it works.

A request over HTTP is over when it is answered; a program is present from its first edit on until
its session ends, or until it has asked for nothing for a while.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Final, TypeVar

from antiphon_kernel.access import VIA_MCP
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.resource_feed import ResourceFeed
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import NAME_LENGTH, as_name
from antiphon_kernel.types.records import Actor, Principal

Result = TypeVar("Result")

VISIT: Final = "antiphon.visit"
"""The key of the `AuthenticatedSession` of a request in its scope."""

SESSION_HEADER: Final = "mcp-session-id"

_NAMELESS: Final = "mcp-client"


@dataclass(eq=False)
class McpClient:
    """One program, and the session in which it acts."""

    actor: Actor
    session: str
    """Its session of MCP; empty in the era without sessions."""
    used: float = 0.0
    """The time of its last request, by the clock of the event loop."""
    feeds: dict[str, ResourceFeed] = field(default_factory=dict)
    """By URI, what it has subscribed to in its session."""
    calls: set[asyncio.Task[Any]] = field(default_factory=set)
    """Calls under way."""

    async def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a call, which ends when the program has to go.

        Raises:
            AntiphonError: what it fails with; permission_denied if it had to end.
        """
        # It is no part of the library's task, which must not be cancelled.
        work = asyncio.create_task(call)
        self.calls.add(work)
        try:
            await asyncio.wait({work})
        finally:
            self.calls.discard(work)
            work.cancel()
        if work.cancelled():
            said = "The session has ended, and with it the call, which may have taken effect."
            raise AntiphonError(ErrorCode.PERMISSION_DENIED, said)
        return work.result()


class McpClients:
    """The programs at work. Belongs to one event loop."""

    def __init__(self, kernel: Kernel, limits: ServerLimits) -> None:
        self._kernel = kernel
        self._limits = limits
        self._clients: dict[object, McpClient] = {}
        self._streams: Counter[str] = Counter()
        """Open streams by the session of MCP, or of the kernel, that they belong to."""
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    async def acting(self, scope: Mapping[str, Any], session: str, name: str) -> McpClient:
        """Return the program that a request comes from.

        Args:
            session: its session of MCP; empty in the era without sessions.
            name: how it calls itself. Whoever comes as the owner acts under it, as an agent.

        Raises:
            AntiphonError: permission_denied for somebody who has been kicked.
        """
        visit: AuthenticatedSession = scope[VISIT]
        principal, by = await self._principal(visit, name), visit.actor
        key = session, principal.id, by.credential, by.within
        client = self._clients.get(key)
        if client is None:
            self._kernel.access.check_admission(principal)
            actor = self._kernel.open_session(
                principal, VIA_MCP, credential=by.credential, lasts=False, within=by.within
            )
            client = self._clients[key] = McpClient(actor, session)
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
            self._streams += Counter()  # forget those that have none
            for client in self._clients.values():
                if session in (client.session, client.actor.session):
                    client.used = asyncio.get_running_loop().time()

    async def end(self, session: str | None = None) -> None:
        """End the programs of a session of MCP that is over; all if None."""
        for key, client in list(self._clients.items()):
            if session in (None, client.session):
                self._end(key)
        if self._ending:
            await asyncio.wait(self._ending)

    def _end(self, key: object) -> None:
        if (client := self._clients.pop(key, None)) is not None:
            for feed in client.feeds.values():
                feed.close()
            for call in client.calls:
                call.cancel()
            ending = asyncio.create_task(self._kernel.close_session(client.actor))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _sweep_later(self) -> None:
        if self._sweeping is None and self._clients:
            pause = self._limits.mcp_idle / 4
            self._sweeping = asyncio.get_running_loop().call_later(pause, self._sweep)

    def _sweep(self) -> None:
        self._sweeping, now = None, asyncio.get_running_loop().time()
        for key, client in list(self._clients.items()):
            idle = self._limits.mcp_session if client.feeds else self._limits.mcp_idle
            is_busy = client.calls or not self._streams.keys().isdisjoint(
                (client.session, client.actor.session)
            )
            if not is_busy and now - client.used >= idle:
                self._end(key)
        self._sweep_later()

    async def _principal(self, visit: AuthenticatedSession, name: str) -> Principal:
        """Return who acts; a name that somebody else has gets a number."""
        principal = visit.actor.principal
        if visit.is_guest or principal.id != self._kernel.owner.id or "as" in visit.query:
            return principal
        base = as_name(re.sub("[^a-z0-9_-]+", "-", name.lower())) or _NAMELESS
        base = base[: NAME_LENGTH - 4].rstrip("-")
        for candidate in chain([base], (f"{base}-{number}" for number in count(2))):
            principal = await self._kernel.principal(candidate, PrincipalKind.AGENT)
            if principal.kind is PrincipalKind.AGENT:
                break
        return principal
