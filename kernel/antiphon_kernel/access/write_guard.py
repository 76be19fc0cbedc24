"""The check of whoever writes, made in the moment of the write."""

from __future__ import annotations

from antiphon_kernel.access.members import Members
from antiphon_kernel.access.permissions import check_update
from antiphon_kernel.access.sessions import Sessions
from antiphon_kernel.types.records import Actor


class WriteGuard:
    """Guard of every context: it knows the sessions and the roles as they are now."""

    def __init__(self, sessions: Sessions, members: Members) -> None:
        self._sessions = sessions
        self._members = members

    def check_session(self, actor: Actor) -> None:
        """Raises AntiphonError permission_denied if the session has been dismissed."""
        self._sessions.check(actor)

    def check_writer(self, actor: Actor) -> None:
        """Raise unless the session is open and the actor's role, as it is now, permits writing.

        Raises:
            AntiphonError: permission_denied.
        """
        self._sessions.check(actor)
        check_update(actor.principal, self._members.role_of(actor.principal))
