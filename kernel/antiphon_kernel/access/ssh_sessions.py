"""Sessions over SSH: opened for people whose keys an SSH host has verified.

An SSH host is a process of the kernel's user. It opens a session for each connection of a guest and
gets a token for it, by which the guest's app comes in; both end with the session, and all sessions
of a host end with the host.
"""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from antiphon_kernel.access.invitations import TOKEN_BYTES, fingerprint_of
from antiphon_kernel.access.sessions import Dismissal, Sessions
from antiphon_kernel.types.ids import SessionId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.signal import News

VIA_SSH: Final = "ssh"


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

    open: dict[SessionId, Actor] = field(default_factory=dict)
    ended: deque[EndedSession] = field(default_factory=deque)
    news: News = field(default_factory=News)


class SshSessions:
    """Every open session over SSH, by its token and by its host."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._by_token: dict[str, Actor] = {}
        self._hosts: dict[SessionId, _Host] = {}

    def add(self, actor: Actor, host: Actor) -> str:
        """Keep a session that has begun; return the token by which its app comes in."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        known = self._hosts.setdefault(host.session, _Host())
        known.open[actor.session] = actor
        self._by_token[fingerprint_of(token)] = actor

        def dismissed(dismissal: Dismissal) -> None:
            self._forget(actor)
            known.ended.append(EndedSession(actor.session, dismissal.reason))
            known.news.announce()

        self._sessions.on_dismissal(actor, dismissed)
        return token

    def find(self, token: str) -> Actor | None:
        """Return the open session of a token."""
        return self._by_token.get(fingerprint_of(token))

    def remove(self, host: SessionId, session: SessionId) -> Actor | None:
        """Take out a session that its host has ended; None if the host has no such one."""
        known = self._hosts.get(host)
        actor = known.open.pop(session, None) if known is not None else None
        if actor is not None:
            self._forget(actor)
        return actor

    def is_host(self, session: SessionId) -> bool:
        """Return whether a session is that of an SSH host, which has asked for ended ones."""
        return session in self._hosts

    def remove_host(self, host: SessionId) -> list[Actor]:
        """Take out all sessions of a host that has gone."""
        known = self._hosts.pop(host, None)
        gone = list(known.open.values()) if known is not None else []
        for actor in gone:
            self._forget(actor)
        return gone

    async def ended(self, host: SessionId, seconds: float) -> list[EndedSession]:
        """Return which sessions of a host have been dismissed since this was asked last.

        If there is none, wait for one.
        """
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

    def _forget(self, actor: Actor) -> None:
        for token in [key for key, one in self._by_token.items() if one is actor]:
            del self._by_token[token]
