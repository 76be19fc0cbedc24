"""Who is let in, who is told so, and who has to go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.kernel.access.invitations import Invitations, NotAdmittedError
from antiphon_kernel.kernel.access.members import Members
from antiphon_kernel.kernel.access.sessions import Dismissal, OpenSession, Sessions
from antiphon_kernel.types.access import AccessRole
from antiphon_kernel.types.clock import Clock, iso_time
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.records import Principal
from antiphon_kernel.wire.close_codes import CloseCode

JOINS_KEPT: Final = 100

ABSENCE_MS: Final = 60_000
"""Who comes back after a longer time than this has joined anew."""

IN_THE_KERNEL: Final = ("turn", "kernel")
"""How sessions came in that have no client; what they may do is asked with each call."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Joined:
    """Somebody who was not here has come in with an invitation."""

    number: int
    """Counts from 1."""
    principal: Principal
    role: AccessRole
    credential: int
    """Number of the invitation."""
    time: int
    """Milliseconds since the epoch."""


class Gate:
    """Changes of standing. They are in effect at once, also while the disk is slow.

    Nobody comes in between a dismissal and what keeps the dismissed out: both happen before the
    event loop goes on.
    """

    def __init__(
        self, members: Members, invitations: Invitations, sessions: Sessions, clock: Clock
    ) -> None:
        self.owner: Principal
        """The founder: nobody takes that role away."""
        self._members = members
        self._invitations = invitations
        self._sessions = sessions
        self._clock = clock
        self._joins: deque[Joined] = deque(maxlen=JOINS_KEPT)
        self._join = asyncio.Event()
        self._last_here: dict[PrincipalId, int] = {}

    # In

    def check_welcome(self, principal: Principal) -> None:
        """Raises NotAdmittedError for those who are kicked, and for the kernel's own principal."""
        if principal.kind is PrincipalKind.SYSTEM:
            raise NotAdmittedError(
                CloseCode.UNAUTHORISED, "Nobody can act as the kernel itself: choose another name."
            )
        until = self._members.barred_until(principal)
        if until is not None:
            raise NotAdmittedError(
                CloseCode.KICKED,
                f"{principal.username} has been kicked and may come back at {iso_time(until)}.",
            )

    @property
    def last_join(self) -> int:
        """Number of the latest arrival; 0 if there was none."""
        return self._joins[-1].number if self._joins else 0

    async def joined_since(self, number: int, seconds: float) -> list[Joined]:
        """Arrivals with a higher number; if there are none, the next one within `seconds`.

        A number that has not been reached is from before the kernel was started again.
        """
        if number > self.last_join:
            number = 0
        if self.last_join <= number:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._join.wait()
        return [one for one in self._joins if one.number > number]

    def let_waiters_go(self) -> None:
        """The doors are closing: nobody waits for arrivals any longer."""
        self._join.set()
        self._join = asyncio.Event()

    def came_in(self, session: OpenSession) -> None:
        """A session has begun: those who wait for that are told, unless the principal was here.

        Somebody who was here a moment ago was: scripts come and go with every call.
        """
        principal = session.actor.principal
        if session.credential is None:
            return
        before = self._last_here.get(principal.id)
        self._last_here[principal.id] = session.since
        just_now = before is not None and session.since - before < ABSENCE_MS
        if just_now or len(self._sessions.of(principal.id)) > 1:
            return
        role = session.actor.role
        _log.info("%s joined as %s over %s", principal.username, role, session.via)
        self._joins.append(
            Joined(self.last_join + 1, principal, role, session.credential, session.since)
        )
        self.let_waiters_go()

    def left(self, principal: Principal) -> None:
        """A session has ended: who begins one again soon has only been away for a moment."""
        if principal.id in self._last_here:
            self._last_here[principal.id] = self._clock.now_ms()

    # Out

    async def change_role(self, principal: Principal, role: AccessRole, by: Principal) -> int:
        """Give a role; how many open sessions end, to begin again with it.

        Raises:
            AntiphonError: permission_denied for the founder and for the kernel itself.
        """
        self._check_not_fixed(principal, "keeps the role owner")
        ended = 0
        if role is not self._members.role_of(principal):
            reason = f"{by.username} made you {role.described()}: connect again."
            dismissal = Dismissal(CloseCode.ROLE_CHANGED, reason)
            ended = self._sessions.dismiss(
                dismissal,
                lambda one: one.actor.principal.id == principal.id and one.via not in IN_THE_KERNEL,
            )
        await self._members.give_role(principal, role)
        return ended

    async def kick(self, principal: Principal, minutes: int, reason: str, by: Principal) -> int:
        """End every session of a principal, who cannot come back for so long; how many there were.

        Raises:
            AntiphonError: permission_denied for the founder and for the kernel itself.
        """
        self._check_not_fixed(principal, "cannot be kicked")
        until = self._clock.now_ms() + minutes * 60_000 if minutes else None
        why = f": {reason}" if reason else ""
        back = f" You may come back at {iso_time(until)}." if until is not None else ""
        dismissal = Dismissal(
            CloseCode.KICKED, f"{by.username} kicked {principal.username}{why}.{back}"
        )
        ended = self._sessions.dismiss(
            dismissal, lambda one: one.actor.principal.id == principal.id
        )
        await self._members.bar(principal, until)
        return ended

    async def revoke(self, numbers: list[int], by: Principal) -> tuple[list[int], int]:
        """Take invitations back; which of them were good, and how many open sessions end."""
        dismissal = Dismissal(CloseCode.REVOKED, f"{by.username} revoked the invitation.")
        ended = self._sessions.dismiss(dismissal, lambda one: one.credential in numbers)
        return await self._invitations.revoke(numbers), ended

    def _check_not_fixed(self, principal: Principal, what: str) -> None:
        if principal.id == self.owner.id or principal.kind is PrincipalKind.SYSTEM:
            raise AntiphonError(
                ErrorCode.PERMISSION_DENIED,
                f"{principal.username} {what}: it is the kernel's own. Name somebody else.",
                username=principal.username,
            )
