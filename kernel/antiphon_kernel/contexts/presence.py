"""Current presence in a context; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.signal import Signal


class Presence:
    """Awareness states by awareness client id."""

    def __init__(self) -> None:
        self._states: dict[int, PresenceState] = {}
        self.changed = Signal[int, PresenceState | None]()
        """Each change of a state; None means gone."""

    def put(self, client: int, state: PresenceState) -> None:
        """Add or replace what one session shows of itself."""
        if self._states.get(client) != state:
            self._states[client] = state
            self.changed.notify(client, state)

    def remove(self, client: int) -> None:
        """This session has gone."""
        if self._states.pop(client, None) is not None:
            self.changed.notify(client, None)

    def states(self) -> Mapping[int, PresenceState]:
        return self._states
