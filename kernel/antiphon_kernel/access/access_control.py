"""Admission and dismissal of principals, and notification of joins."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Final

from antiphon_kernel.access.invitations import (
    AuthenticationError,
    Invitations,
    Members,
    expired,
)
from antiphon_kernel.access.permissions import check_update
from antiphon_kernel.access.sessions import HOSTED, Sessions
from antiphon_kernel.storage import Dismissal, StoredAccess
from antiphon_kernel.types.clock import Clock, iso_time
from antiphon_kernel.types.enums import ANSWERING_KINDS, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, permission_denied
from antiphon_kernel.types.ids import PrincipalId, SessionId
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.types.roles import AccessRole, Permission
from antiphon_kernel.types.signal import News
from antiphon_kernel.yjs.close_codes import CloseCode

JOINS_KEPT: Final = 100

ABSENCE_MS: Final = 60_000
"""Milliseconds of absence after which somebody who comes back has joined anew."""

_LOOK_AGAIN_MS: Final = 1_000
"""How often the wall clock is looked at while somebody is here whose invitation expires: timers do
not notice when it is set, or when the machine sleeps."""

IN_THE_KERNEL: Final = ("turn", "kernel")
"""How sessions came in that have no client; what they may do is asked with each call."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Join:
    """Somebody who was not here has come in with an invitation."""

    number: int
    """Counts from 1."""
    principal: Principal
    role: AccessRole
    credential: int
    """Number of the invitation."""
    time: int
    """Milliseconds since the epoch."""


class WriteGuard:
    """Guard of every context: it knows the sessions and the roles as they are now."""

    def __init__(self, sessions: Sessions, members: Members) -> None:
        self._sessions = sessions
        self._members = members

    def check_session(self, actor: Actor) -> None:
        """Raises AntiphonError permission_denied if the session has been dismissed."""
        self._sessions.check(actor)

    def check_writer(self, actor: Actor) -> None:
        """Raise so too if the actor's role, as it is now, does not permit writing."""
        self._sessions.check(actor)
        check_update(actor.principal, self._members.role_of(actor.principal))

    def refusal(self, principal: Principal, session: str) -> AntiphonError | None:
        """Return why a session may not write any more; None if it may."""
        try:
            if all(one.session != session for one in self._sessions.of(principal.id)):
                what = f"The rights of {principal.username} have changed: connect again."
                raise permission_denied(what)
            check_update(principal, self._members.role_of(principal))
        except AntiphonError as error:
            return error
        return None


class AccessControl:
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
        self._joins: deque[Join] = deque(maxlen=JOINS_KEPT)
        self.news = News()
        """Announced when somebody has joined, and when the kernel is closing."""
        self._last_here: dict[PrincipalId, int] = {}
        self._expiry: asyncio.TimerHandle | None = None
        members.read.listen(self._take_over)

    def close(self) -> None:
        """Stop watching for invitations that expire."""
        if self._expiry is not None:
            self._expiry.cancel()

    # In

    def check_admission(self, principal: Principal) -> None:
        """Raise AuthenticationError for kicked principals, mere authors and the kernel's own."""
        if principal.kind is PrincipalKind.SYSTEM:
            raise AuthenticationError("Nobody can act as the kernel itself: choose another name.")
        if self._members.role_of(principal) is AccessRole.AUTHOR:
            raise AuthenticationError(
                f"{principal.username} is known here as an author only: ask for an invitation."
            )
        until = self._members.banned_until(principal)
        if until is not None:
            raise AuthenticationError(
                f"{principal.username} has been kicked and may come back at {iso_time(until)}.",
                CloseCode.KICKED,
            )

    def check_return(self, principal: Principal, credential: int | None) -> None:
        """Raise AuthenticationError if somebody who was here could not come again as before.

        `credential` is that which let them in; None for the owner and the kernel itself.
        """
        if principal.kind is not PrincipalKind.SYSTEM:
            self.check_admission(principal)
        if credential is not None:
            self._invitations.check_usable(credential)

    @property
    def last_join(self) -> int:
        """Number of the latest arrival; 0 if there was none."""
        return self._joins[-1].number if self._joins else 0

    async def joined_since(self, number: int, seconds: float) -> list[Join]:
        """Arrivals with a higher number; if there are none, the next one within `seconds`."""
        if number > self.last_join:  # it is from before the kernel was started again
            number = 0
        if self.last_join <= number:
            await self.news.wait(seconds)
        return [one for one in self._joins if one.number > number]

    def on_session_opened(self, actor: Actor) -> bool:
        """Report a session that has begun; whether its principal has joined with it.

        Only somebody with an invitation joins, and not who was connected a moment ago: scripts come
        and go with every call.
        """
        principal = actor.principal
        if actor.credential is None:
            return False
        self._watch_expiry(actor, actor.credential)
        before = self._last_here.get(principal.id)
        self._last_here[principal.id] = actor.since
        just_now = before is not None and actor.since - before < ABSENCE_MS
        connected = [one for one in self._sessions.of(principal.id) if one.needs is None]
        if just_now or len(connected) > 1:
            return False
        _log.info("%s joined as %s over %s", principal.username, actor.role, actor.via)
        self._joins.append(
            Join(self.last_join + 1, principal, actor.role, actor.credential, actor.since)
        )
        self.news.announce()
        return True

    def on_session_closed(self, actor: Actor) -> None:
        """A session has ended: who begins one again soon has only been away for a moment."""
        if actor.principal.id in self._last_here and actor.needs is None:
            self._last_here[actor.principal.id] = self._clock.now_ms()

    def open_work_session(self, actor: Actor, asker: Actor) -> None:
        """Begin a session without a connection for what somebody has asked for."""
        assert actor.needs is not None
        self._sessions.open(actor)
        if actor.credential is not None:
            self._watch_expiry(actor, actor.credential)
        dismissal = self._sessions.dismissal(asker)
        if dismissal is None or dismissal.code is CloseCode.ROLE_CHANGED:
            if actor.role.may(actor.needs):
                return
            dismissal = Dismissal(CloseCode.ROLE_CHANGED, f"You are {actor.role.described()}.")
        self._sessions.dismiss(dismissal, lambda one: one is actor)

    def _watch_expiry(self, actor: Actor, credential: int) -> None:
        expires = self._invitations.credentials[credential].expires
        soon = expires is not None and expires - actor.since < _LOOK_AGAIN_MS
        if soon or (expires is not None and self._expiry is None):
            self.end_expired()

    # Out

    async def change_role(self, principal: Principal, role: AccessRole, by: Principal) -> int:
        """Give a role; how many open sessions end, to begin again with it.

        Raises AntiphonError permission_denied for the founder and for the kernel itself.
        """
        self._check_not_fixed(principal, "keeps the role owner")
        reason = f"{by.username} made you {role.described()}: connect again."
        ending = Dismissal(CloseCode.ROLE_CHANGED, reason, principal.id, role=role)
        is_new = role is not self._members.role_of(principal)
        ended = self._end(ending) if is_new else 0
        await self._members.give_role(principal, role, ending if is_new else None)
        return ended

    async def kick(self, principal: Principal, minutes: int, reason: str, by: Principal) -> int:
        """End every session of a principal, who cannot come back for so long; as `change_role`."""
        self._check_not_fixed(principal, "cannot be kicked")
        until = self._clock.now_ms() + minutes * 60_000 if minutes else None
        why = f": {reason}" if reason else ""
        back = f" You may come back at {iso_time(until)}." if until is not None else ""
        reason = f"{by.username} kicked {principal.username}{why}.{back}"
        ending = Dismissal(CloseCode.KICKED, reason, principal.id)
        ended = self._end(ending)
        await self._members.ban(principal, until, ending)
        return ended

    def end_session(self, session: SessionId, reason: str) -> int:
        """End one session and what came in by it; how many connections there were."""
        dismissal = Dismissal(CloseCode.KICKED, reason)
        return self._sessions.dismiss(dismissal, lambda one: session in (one.session, one.within))

    async def revoke(
        self, numbers: list[int], by: Principal, what: str = "invitation"
    ) -> tuple[list[int], int]:
        """Take invitations or keys back; which of them were good, and how many sessions end."""
        reason = f"{by.username} revoked the {what}."
        endings = {one: Dismissal(CloseCode.REVOKED, reason, credential=one) for one in numbers}
        ended = sum(map(self._end, endings.values()))
        return await self._invitations.revoke(endings), ended

    def _end(self, ending: Dismissal) -> int:
        """End the sessions that an ending is about; how many there were."""
        return self._sessions.dismiss(ending, partial(_is_ended, ending))

    def _take_over(self, stored: StoredAccess) -> None:
        """End here what has been ended at other kernels."""
        for ending in stored.endings:
            self._end(ending)
        self.end_expired()

    def end_expired(self) -> None:
        """End every session of an invitation that has expired; called again when the next does."""
        self.close()
        now, due = self._clock.now_ms(), _LOOK_AGAIN_MS
        watched = False
        for number in self._sessions.credentials():
            credential = self._invitations.credentials[number]
            expires = credential.expires
            if expires is None:
                continue
            if expires <= now:
                reason = expired(credential)
                self._end(Dismissal(CloseCode.UNAUTHORISED, reason, credential=number))
            else:
                due, watched = min(due, expires - now), True
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(due / 1_000, self.end_expired) if watched else None

    def _check_not_fixed(self, principal: Principal, what: str) -> None:
        if principal.id == self.owner.id or principal.kind is PrincipalKind.SYSTEM:
            raise permission_denied(
                f"{principal.username} {what}: it is the kernel's own. Name somebody else.",
                username=principal.username,
            )


def _is_ended(ending: Dismissal, actor: Actor) -> bool:
    """Return whether a session is one of those that an ending is about."""
    return (
        ending.principal in (None, actor.principal.id)
        and ending.credential in (None, actor.credential)
        and (ending.role is None or _ends_with_role(actor, AccessRole(ending.role)))
    )


def _ends_with_role(actor: Actor, role: AccessRole) -> bool:
    """Whether a session ends as its principal gets this role: all but models' turns, work that the
    principal may still have done, and one over SSH, whose connections begin again by its token."""
    if actor.needs is not None:
        return not role.may(actor.needs)
    if actor.via in HOSTED and actor.within is None:
        return not role.may(Permission.READ)
    return actor.via not in IN_THE_KERNEL or actor.principal.kind not in ANSWERING_KINDS
