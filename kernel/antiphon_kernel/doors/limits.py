"""What one connection may ask of a door, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Sizes in bytes, times in seconds."""

    frame: int = 32 * 2**20
    """One WebSocket message; a client that was offline for long sends all it wrote in one."""
    awareness: int = 64 * 2**10
    """One awareness message."""
    state_vector: int = 2**20
    """The state vector of a sync step 1."""
    request: int = 8 * 2**20
    """The body of one tool call."""
    unread: int = 4 * 2**20
    """What may wait for a slow reader before it gets a resync in its place."""
    uncommitted_updates: int = 256
    """Updates of one connection on their way to disk; more are read when these have arrived."""
    turn: float = 0.005
    """How long one connection may keep the event loop busy."""
    tick: float = 0.005
    """Pause between two broadcasts of a busy room; an idle one broadcasts at once."""
    presence_tick: float = 0.04
    """Pause between two broadcasts of who is where; the first is sent at once."""
    merged_updates: int = 100
    """Updates in one broadcast."""
    stalled: float = 60.0
    """A connection that has read nothing for so long is cut off."""
    heartbeat: float = 12.0
    """Pause between two signs of life; Yjs clients drop a connection that is silent for 30."""


DEFAULT_DOOR_LIMITS: Final = DoorLimits()
