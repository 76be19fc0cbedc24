"""Position in a replay, and the document at it."""

from __future__ import annotations

from collections.abc import Mapping

from antiphon.replay.replay import Replay
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.presence import PresenceState


class Player:
    """A replay at one moment, and its clock."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.at_ms = 0
        self.document: Document
        """Always the same object: what differs at another moment is changed in it."""

    def seek(self, at_ms: int) -> None:
        """Go to a moment; before the first and behind the last there is none."""
        raise NotImplementedError

    def presence(self) -> Mapping[int, PresenceState]:
        """Return who is where at this moment, by numbers that stand for sessions."""
        raise NotImplementedError

    def now_ms(self) -> int:
        """Return when it was, in milliseconds since the epoch."""
        raise NotImplementedError

    def monotonic(self) -> float:
        """Return the position in seconds."""
        return self.at_ms / 1000
