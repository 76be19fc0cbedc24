"""The open sessions of a kernel, and how one is ended from the kernel's side."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId, SessionId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.close_codes import CloseCode

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dismissal:
    """Why a session is ended, as its client is told."""

    code: CloseCode
    reason: str


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
        return [
            one
            for one in self._open.values()
            if one.principal.id == principal and one not in self._dismissed
        ]

    def credentials(self) -> set[int]:
        """Return the numbers of the credentials that let in the sessions that are open."""
        return {
            one.credential
            for one in self._open.values()
            if one.credential is not None and one not in self._dismissed
        }

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
        due = [one for one in self._open.values() if one not in self._dismissed and which(one)]
        for one in due:
            self._dismissed[one] = dismissal
            _log.info("session %s of %s: %s", one.session, one.principal.username, dismissal)
            listener = self._listeners.get(one.session)
            if listener is not None:
                listener(dismissal)
        return len(due)

    def check(self, actor: Actor) -> None:
        """Raises AntiphonError permission_denied if the session has been dismissed."""
        # Hardly ever is anybody dismissed, and looking for an actor costs more than this.
        dismissal = self._dismissed.get(actor) if self._dismissed else None
        if dismissal is not None:
            raise AntiphonError(
                ErrorCode.PERMISSION_DENIED, dismissal.reason, close_code=int(dismissal.code)
            )
