"""The open sessions of a kernel, and how one is ended from the kernel's side.

Sessions over SSH are opened for people whose keys an SSH host has verified, which is a process of
the kernel's user; those in a browser, which count as such here, for people who have shown a web
host an invitation. It opens a session for each connection of a guest and gets a token for it, by
which the guest's app comes in; both end with the session, and all sessions of a host with the host.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from antiphon_kernel.access.invitations import TOKEN_BYTES, fingerprint_of
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.types.errors import permission_denied
from antiphon_kernel.types.ids import PrincipalId, SessionId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.signal import News

VIA_SSH: Final = "ssh"
VIA_WEB: Final = "web"
HOSTED: Final = (VIA_SSH, VIA_WEB)
"""Ways by which a host lets people in."""
VIA_MCP: Final = "mcp"
"""Within the kernel: of a program that asks over MCP, for as long as it is at work."""
VIA_TURN: Final = "turn"
"""Within the kernel: of a model in its turn, and of whoever asked for it."""

_log = logging.getLogger(__name__)


Listener = Callable[[Dismissal], None]


class Sessions:
    """Connected sessions. A dismissed one can do nothing more, whatever is still under way."""

    def __init__(self) -> None:
        self._open: dict[SessionId, Actor] = {}
        self._listeners: dict[SessionId, Listener] = {}
        # Also of sessions that have been closed, as long as something acts for them.
        self._dismissed: WeakKeyDictionary[Actor, Dismissal] = WeakKeyDictionary()

    def open(self, actor: Actor) -> None:
        self._open[actor.session] = actor

    def close(self, session: SessionId) -> None:
        """It is over; asking twice does no harm."""
        self._open.pop(session, None)
        self._listeners.pop(session, None)

    def of(self, principal: PrincipalId) -> list[Actor]:
        """Return the open sessions of one principal, oldest first; dismissed ones are none."""
        return [one for one in self._not_dismissed() if one.principal.id == principal]

    def credentials(self) -> set[int]:
        """Return the numbers of the credentials that let in the sessions that are open."""
        found = {one.credential for one in self._not_dismissed()}
        return {one for one in found if one is not None}

    def _not_dismissed(self) -> list[Actor]:
        return [one for one in self._open.values() if one not in self._dismissed]

    def dismissal(self, actor: Actor) -> Dismissal | None:
        """Return why the session has been dismissed; None if it has not."""
        return self._dismissed.get(actor)

    def on_dismissal(self, actor: Actor, listener: Listener) -> None:
        """Call `listener` when the session is dismissed; at once if it has been."""
        self._listeners[actor.session] = listener
        dismissal = self._dismissed.get(actor)
        if dismissal is not None:
            listener(dismissal)

    def dismiss(self, dismissal: Dismissal, which: Callable[[Actor], bool]) -> int:
        """End every session for which `which` says so; how many there were."""
        due = list(filter(which, self._not_dismissed()))
        for one in due:
            self._dismissed[one] = dismissal
            _log.info("session %s of %s: %s", one.session, one.principal.username, dismissal)
            if (listener := self._listeners.get(one.session)) is not None:
                listener(dismissal)
        return len(due)

    def check(self, actor: Actor) -> None:
        """Raises AntiphonError permission_denied if the session has been dismissed."""
        # Hardly ever is anybody dismissed, and looking for an actor costs more than this.
        dismissal = self._dismissed.get(actor) if self._dismissed else None
        if dismissal is not None:
            raise permission_denied(dismissal.reason, close_code=int(dismissal.code))


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A session that the kernel has ended."""

    session: str
    """Id of the session."""
    reason: str
    """Why, as the person is told."""


@dataclass(slots=True)
class _Host:
    """The sessions of one SSH host."""

    open: dict[str, Actor] = field(default_factory=dict)
    """By the fingerprint of the token."""
    ended: deque[EndedSession] = field(default_factory=deque)
    news: News = field(default_factory=News)


class SshSessions:
    """Every open session over SSH, by its host and its token."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._hosts: dict[SessionId, _Host] = {}

    def add(self, actor: Actor, host: Actor) -> str:
        """Keep a session that has begun; return the token by which its app comes in."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        known = self._hosts.setdefault(host.session, _Host())
        known.open[fingerprint_of(token)] = actor

        def dismissed(dismissal: Dismissal) -> None:
            known.ended.append(EndedSession(actor.session, dismissal.reason))
            known.news.announce()

        self._sessions.on_dismissal(actor, dismissed)
        return token

    def find(self, token: str) -> Actor | None:
        """Return the open session of a token; None also if it has been dismissed."""
        fingerprint = fingerprint_of(token)
        found = (known.open.get(fingerprint) for known in self._hosts.values())
        actor = next((one for one in found if one is not None), None)
        return actor if actor is None or self._sessions.dismissal(actor) is None else None

    def remove(self, host: SessionId, session: SessionId) -> Actor | None:
        """Take out a session that its host has ended; None if the host has no such one."""
        known = self._hosts.get(host, _Host())
        tokens = [token for token, actor in known.open.items() if actor.session == session]
        return known.open.pop(tokens[0]) if tokens else None

    def is_host(self, session: SessionId) -> bool:
        """Return whether a session is that of an SSH host, which has asked for ended ones."""
        return session in self._hosts

    def remove_host(self, host: SessionId) -> list[Actor]:
        """Take out all sessions of a host that has gone."""
        return list(self._hosts.pop(host, _Host()).open.values())

    async def ended(self, host: SessionId, seconds: float) -> list[EndedSession]:
        """Return which sessions of a host were dismissed since this was asked; wait for one."""
        known = self._hosts.setdefault(host, _Host())
        if not known.ended:
            await known.news.wait(seconds)
        ended = list(known.ended)
        known.ended.clear()
        return ended

    def wake_waiters(self) -> None:
        """Let nobody wait any longer: the kernel is closing."""
        for known in self._hosts.values():
            known.news.announce()
