"""The connection to the kernel as the person is told of it, and who they are on it."""

from __future__ import annotations

from time import monotonic
from typing import Final

from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import rejected_location
from antiphon.session import ConnectionStatus, SessionStatus
from antiphon_kernel.types.signal import Signal

NOTICED_SECONDS: Final = 1.0
"""A connection that is lost for less than this was not missed."""


class ConnectionWatch(Controller):
    """Follows the session's status; tells of what has changed, by hints and signals."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._status = scope.session.status
        self._away_since: float | None = None
        self.came_live = Signal[()]()
        self.role_changed = Signal[()]()
        """The person may write now, or may not any more."""
        self.identified = Signal[()]()
        """The message can be shared and sent: it is known whose it is."""
        self.changed = Signal[()]()

    def start(self) -> None:
        """Take the connection as it is; it may have changed since the session was made."""
        if self._status.connection is ConnectionStatus.LIVE:
            self.came_live.notify()
        self.look()

    def look(self) -> None:
        """Compare the session's status with the one before."""
        status, before = self._session.status, self._status
        if status == before:
            return
        self._check_caught_up(status)
        self._status = status
        is_live = status.connection is ConnectionStatus.LIVE
        if is_live and before.connection is not ConnectionStatus.LIVE:
            self.came_live.notify()
        if status.is_rejected != before.is_rejected:
            self.role_changed.notify()
        if status.reason is not None and status.reason != before.reason:
            self._hint(status.reason, weighty=status.is_rejected)
        if status.is_rejected and status.refused is not None:
            if before.refused is not status.refused or not before.is_rejected:
                self._hint(rejected_location(status.refused), weighty=True)
        self.changed.notify()

    def _check_caught_up(self, status: SessionStatus) -> None:
        """Say so when all that was written without a connection has arrived."""
        is_live = status.connection is ConnectionStatus.LIVE
        if self._status.connection is ConnectionStatus.LIVE and not is_live:
            self._away_since = monotonic()
        elif self._away_since is not None and is_live and not status.unsaved:
            away, self._away_since = monotonic() - self._away_since, None
            if away >= NOTICED_SECONDS:
                self._hint("Caught up: what was written here and elsewhere is together again.")

    def identify(self) -> None:
        """Take over who the person is, if the kernel has said so, or that their role is another."""
        me, user = self._session.me, self._session.user
        if me is None:
            return
        if self._source.me is None:
            self._source.identify(me.principal)
            self._scope.composer.mark.colour = me.colour
        if me.role is not None and str(me.role) != user.role:
            told = user.update(str(me.role))
            self.role_changed.notify()
            if told is not None:
                self._hint(told)
        draft = self._scope.composer.draft
        if user.refusal is None and not draft.is_identified:
            elsewhere = {
                state.block
                for state in self._session.presence().values()
                if state.principal == me.principal and state.block is not None
            }
            draft.attach(me.principal, elsewhere)
            self.identified.notify()
