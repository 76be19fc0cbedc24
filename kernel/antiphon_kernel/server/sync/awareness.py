"""The awareness states of one room, with identities that the kernel vouches for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon_kernel.contexts import Presence
from antiphon_kernel.server.sync.connection import SyncConnection
from antiphon_kernel.types.presence import CHECKED_KEYS, PresenceState
from antiphon_kernel.types.records import Member
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.frames import AwarenessEntry

_CLOCK_ZERO: Final = 1_735_689_600
"""2025-01-01: clocks count tenths of seconds from here, so that a restarted kernel is ahead."""


@dataclass(slots=True)
class _ClientState:
    """A connected client's own awareness id."""

    connection: SyncConnection
    clock: int
    state: dict[str, Any]
    heard: float
    """When it last said something."""


@dataclass(eq=False)
class ServerAwareness:
    """Awareness of a room: clients by what they say, models by what the kernel knows.

    Clocks on the wire are the room's, not the client's: a client that comes back with its old
    clock would otherwise be ignored by those who remember it. Only the echo to a client itself
    carries the clock that it chose, since a Yjs client lets a higher one overwrite its state.
    """

    presence: Presence
    expiry: float
    """Seconds of silence after which a client is not taken to be here any more."""
    monotonic: Callable[[], float]
    changed: Signal[int] = field(default_factory=Signal[int])
    """Each client that has come, moved or gone, by its awareness id."""
    _seats: dict[int, _ClientState] = field(default_factory=dict)
    _clock: int = 0

    def __post_init__(self) -> None:
        notify = self.changed.notify
        self._unwatch = self.presence.changed.listen(lambda client, _: notify(client))

    def close(self) -> None:
        """Stop watching, and notify nobody any more."""
        self._unwatch()
        self.changed.clear()

    def receive(
        self, connection: SyncConnection, member: Member, entries: Iterable[AwarenessEntry]
    ) -> None:
        """Take in what a client says.

        A connection has one awareness id, the first that is nobody else's; what it says about
        others is passed over, since Yjs clients repeat what they have heard.
        """
        for client, clock, state in entries:
            if connection.awareness_client is None and state is not None:
                self._client_state(connection, client)
            if connection.awareness_client != client:
                continue
            if state is None:
                self.leave(connection)
            else:
                self._put(connection, member, client, clock, state)

    def leave(self, connection: SyncConnection) -> None:
        """A client has gone."""
        client = connection.awareness_client
        connection.awareness_client = None
        if client is not None and client in self._seats:
            del self._seats[client]
            self.presence.remove(client)
            self.changed.notify(client)

    def expire(self) -> None:
        """Let go of everyone who has been silent for too long; they may come back."""
        oldest = self.monotonic() - self.expiry
        for seat in [seat for seat in self._seats.values() if seat.heard < oldest]:
            self.leave(seat.connection)

    def echo(self, connection: SyncConnection) -> AwarenessEntry | None:
        """A client's own state as the kernel has it, under the client's clock."""
        client = connection.awareness_client
        seat = self._seats.get(client) if client is not None else None
        if client is None or seat is None:
            return None
        return AwarenessEntry(client, seat.clock, seat.state)

    def entry(self, client: int) -> AwarenessEntry:
        """Return one client's current entry for the others."""
        seat = self._seats.get(client)
        if seat is not None:
            return AwarenessEntry(client, self._tick(), seat.state)
        state = self.presence.states().get(client)
        return AwarenessEntry(client, self._tick(), state.as_json() if state is not None else None)

    def everyone(self, but: int | None = None) -> list[AwarenessEntry]:
        """All who are here."""
        clients = self._seats.keys() | self.presence.states().keys()
        return [self.entry(client) for client in sorted(clients) if client != but]

    def in_the_kernel(self) -> list[int]:
        """Those who are here without a connection of their own: models, scripts."""
        return [client for client in self.presence.states() if client not in self._seats]

    def _client_state(self, connection: SyncConnection, client: int) -> None:
        seat = self._seats.get(client)
        if seat is None:
            if client not in self.presence.states():
                connection.awareness_client = client
        elif seat.connection.actor.principal == connection.actor.principal:
            # The same client is back before its old connection is known to be dead.
            seat.connection.awareness_client = None
            connection.awareness_client = client

    def _put(
        self,
        connection: SyncConnection,
        member: Member,
        client: int,
        clock: int,
        said: Mapping[str, Any],
    ) -> None:
        identity = {
            "principal": member.principal,
            "name": member.username,
            "kind": str(member.kind),
            "colour": member.colour,
            "session": connection.actor.session,
            "role": str(connection.actor.role),
        }
        state = {**said, **identity}
        if isinstance(said.get("user"), dict):
            state["user"] = {**said["user"], "name": member.username}
        parsed = PresenceState.parse(state)
        readable = parsed.as_json() if parsed is not None else {}
        for key in CHECKED_KEYS:
            state.pop(key, None)
            if key in readable:
                state[key] = readable[key]
        self._seats[client] = _ClientState(connection, clock, state, self.monotonic())
        if parsed is not None:
            self.presence.put(client, parsed)
        self.changed.notify(client)

    def _tick(self) -> int:
        self._clock = max(self._clock + 1, int((time.time() - _CLOCK_ZERO) * 10))
        return self._clock
