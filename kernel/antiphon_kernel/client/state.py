"""Connection state of a replica to its kernel."""

from __future__ import annotations

from enum import StrEnum


class ReplicaState(StrEnum):
    """Connection state of a replica."""

    CONNECTING = "connecting"
    """Looking for the kernel for the first time."""
    CATCHING_UP = "catching_up"
    """Connected; what was missed is on its way."""
    LIVE = "live"
    OFFLINE = "offline"
    """No connection; the next attempt comes by itself."""
    REFUSED = "refused"
    """The kernel will not have this replica, for the reason `rejection`; it has given up."""
