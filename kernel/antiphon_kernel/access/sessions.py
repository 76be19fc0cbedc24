"""The open sessions of a kernel, and how one is ended from the kernel's side."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId, SessionId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.close_codes import CloseCode

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """One connection of one principal."""

    actor: Actor
    credential: int | None = None
    """Number of the credential that let it in; None for the owner and for the kernel's own."""


@dataclass(frozen=True, slots=True)
class Dismissal:
    """Why a session is ended, as its client is told."""

    code: CloseCode
    reason: str


Listener = Callable[[Dismissal], None]


class Sessions:
    """Connected sessions. A dismissed one can do nothing more, whatever its door still holds."""

    def __init__(self) -> None:
        self._open: dict[SessionId, OpenSession] = {}
        self._dismissed: dict[SessionId, Dismissal] = {}
        self._listeners: dict[SessionId, Listener] = {}

    def open(self, session: OpenSession) -> None:
        self._open[session.actor.session] = session

    def close(self, session: SessionId) -> None:
        """It is over; asking twice does no harm."""
        for kept in (self._open, self._dismissed, self._listeners):
            kept.pop(session, None)

    def of(self, principal: PrincipalId) -> list[OpenSession]:
        """Return the open sessions of one principal, oldest first; dismissed ones are none."""
        return [
            one
            for session, one in self._open.items()
            if one.actor.principal.id == principal and session not in self._dismissed
        ]

    def credentials(self) -> set[int]:
        """Return the numbers of the credentials that let in the sessions that are open."""
        return {
            one.credential
            for session, one in self._open.items()
            if one.credential is not None and session not in self._dismissed
        }

    def on_dismissal(self, session: SessionId, listener: Listener) -> None:
        """Call `listener` when the session is dismissed; at once if it has been."""
        self._listeners[session] = listener
        dismissal = self._dismissed.get(session)
        if dismissal is not None:
            listener(dismissal)

    def dismiss(self, dismissal: Dismissal, which: Callable[[OpenSession], bool]) -> int:
        """End every session for which `which` says so; how many there were."""
        due = [
            one
            for session, one in self._open.items()
            if session not in self._dismissed and which(one)
        ]
        for one in due:
            session = one.actor.session
            self._dismissed[session] = dismissal
            _log.info("session %s of %s: %s", session, one.actor.principal.username, dismissal)
            listener = self._listeners.get(session)
            if listener is not None:
                listener(dismissal)
        return len(due)

    def check(self, actor: Actor) -> None:
        """Raises AntiphonError permission_denied if the session has been dismissed."""
        dismissal = self._dismissed.get(actor.session)
        if dismissal is not None:
            raise AntiphonError(
                ErrorCode.PERMISSION_DENIED, dismissal.reason, close_code=int(dismissal.code)
            )
