"""Programs that speak MCP, as the kernel knows them: each with a session of its own while it works.

A request over HTTP is over when it is answered; a program is present from its first edit on until
its session of MCP ends, or until it has asked for nothing for a while and follows no block.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from antiphon_kernel.access import VIA_MCP
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.forwarding import Forwarder, SessionCalls
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import permission_denied
from antiphon_kernel.types.ids import NAME_LENGTH, as_name
from antiphon_kernel.types.records import Actor, Principal


@dataclass(eq=False)
class McpClient:
    """One program, and the session in which it acts."""

    actor: Actor
    caller: SessionCalls
    telling: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Tells of changes of what it has subscribed to in its session, by URI."""
    leaving: asyncio.TimerHandle | None = None
    """When it has been idle for too long."""
    gone: asyncio.Future[Any] = field(default_factory=asyncio.Future)

    async def run(self, call: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Return the result of a call, which ends when the program has to go.

        Raises:
            AntiphonError: what it fails with; permission_denied if it had to end.
        """
        work = asyncio.create_task(call)  # the library's own task must not be cancelled
        try:
            await asyncio.wait({work, self.gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
        finally:
            work.cancel()
        said = "The session has ended, and with it the call, which may have taken effect."
        raise permission_denied(said)


class McpClients:
    """The programs at work. Belongs to one event loop."""

    def __init__(self, kernel: Kernel, forwarder: Forwarder, idle: float) -> None:
        """`idle` is for how many seconds a program stays that asks for nothing."""
        self._kernel = kernel
        self._forwarder = forwarder
        self._idle = idle
        self._clients: dict[tuple[object, ...], McpClient] = {}
        """By session of MCP, and who acts in it."""
        self._ending: set[asyncio.Task[None]] = set()

    async def acting(self, visit: AuthenticatedSession, session: str, name: str) -> McpClient:
        """Return the program that a request comes from.

        Args:
            session: its session of MCP; empty in the era without sessions.
            name: how it calls itself. Whoever comes as the owner acts under it, as an agent.

        Raises:
            AntiphonError: permission_denied for somebody who has been kicked.
        """
        principal, by = await self._principal(visit, name), visit.actor
        key = session, principal.id, by.credential, by.within
        client = self._clients.get(key)
        if client is None:
            self._kernel.access.check_admission(principal)
            actor = self._kernel.open_session(
                principal, VIA_MCP, credential=by.credential, lasts=False, within=by.within
            )
            caller = SessionCalls(self._forwarder, replace(visit, actor=actor))
            client = self._clients[key] = McpClient(actor, caller)
            self._kernel.sessions.on_dismissal(actor, lambda _: self._end(key))
        self._stay(key, client)
        return client

    def end(self, session: str) -> None:
        """End the programs of a session of MCP that is over."""
        for key in [one for one in self._clients if one[0] == session]:
            self._end(key)

    async def stop(self) -> None:
        """End all programs."""
        for key in list(self._clients):
            self._end(key)
        await asyncio.gather(*self._ending)

    def _stay(self, key: tuple[object, ...], client: McpClient) -> None:
        if client.leaving is not None:
            client.leaving.cancel()
        loop = asyncio.get_running_loop()
        client.leaving = loop.call_later(self._idle, self._leave, key, client)

    def _leave(self, key: tuple[object, ...], client: McpClient) -> None:
        if self._kernel.subscriptions.of(client.actor.session):
            self._stay(key, client)
        else:
            self._end(key)

    def _end(self, key: tuple[object, ...]) -> None:
        client = self._clients.pop(key, None)
        if client is not None and client.leaving is not None:
            client.leaving.cancel()
            client.gone.set_result(None)
            ending = asyncio.create_task(self._close(client))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _close(self, client: McpClient) -> None:
        await client.caller.aclose()
        await self._kernel.close_session(client.actor)

    async def _principal(self, visit: AuthenticatedSession, name: str) -> Principal:
        principal = visit.actor.principal
        if visit.is_guest or principal.id != self._kernel.owner.id or "as" in visit.query:
            return principal
        own = as_name(re.sub("[^a-z0-9_-]+", "-", name.lower())) or "mcp-client"
        own = own[: NAME_LENGTH - 4].rstrip("-")
        return await self._kernel.members.principal_of_kind(own, PrincipalKind.AGENT)
