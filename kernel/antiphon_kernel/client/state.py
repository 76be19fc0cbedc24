"""Connection state of a replica to its kernel."""

from __future__ import annotations

from enum import StrEnum

from antiphon_kernel.types.signal import Signal


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
    """The kernel will not have this replica, for the reason `refusal`; it has given up."""


class ConnectionStateMachine:
    """The state of a replica; the connections that it has one after the other change it."""

    def __init__(self) -> None:
        self.state = ReplicaState.CONNECTING
        self.trouble: str | None = None
        """Why the last attempt to connect, or the last connection, failed; None once live."""
        self.kernel_error: str | None = None
        """Why the kernel ended a connection; None once it has saved anything since."""
        self.is_silent = False
        """Whether the kernel leaves a ping unanswered."""
        self.changed = Signal[()]()

    def set_silent(self, is_silent: bool) -> None:
        """Say whether the kernel answers pings."""
        if is_silent is not self.is_silent:
            self.is_silent = is_silent
            self.changed.notify()

    def become(self, state: ReplicaState) -> None:
        """Take on a state; who is refused stays so."""
        if state is ReplicaState.OFFLINE and self.state is ReplicaState.REFUSED:
            return
        if state is ReplicaState.LIVE:
            self.trouble = None
        if state is not self.state:
            self.state = state
            self.changed.notify()
