"""Everybody a kernel knows, and which role each of them has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from antiphon_kernel.storage import AuthStore, Decision, Journal, User
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode, invalid_params
from antiphon_kernel.types.ids import (
    NAME_LENGTH,
    SYSTEM,
    SYSTEM_NAME,
    IdSource,
    PrincipalId,
    is_name,
    resolve,
)
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.uninterruptible import run_uninterrupted


class Members:
    """Principals by name, each with one role, stored."""

    def __init__(self, journal: Journal, auth: AuthStore, clock: Clock, ids: IdSource) -> None:
        self.auth = auth
        self._journal = journal
        self._clock = clock
        self._ids = ids
        self._principals: dict[str, Principal] = {}
        self._by_id: dict[str, Principal] = {}
        self._users: dict[PrincipalId, User] = {}
        self._adding = asyncio.Lock()

    @classmethod
    async def open(cls, journal: Journal, path: Path, clock: Clock, ids: IdSource) -> Members:
        """Read everybody from the journal and from `path`, the file of roles and credentials."""
        known = {one.username: one for one in await journal.principals()}
        members = cls(journal, await AuthStore.open(path), clock, ids)
        try:
            await members._load(known)
        except BaseException:
            await members.close()
            raise
        return members

    async def _load(self, known: dict[str, Principal]) -> None:
        self._principals.update(known)
        self._by_id.update((one.id, one) for one in known.values())
        if SYSTEM_NAME not in known:
            await self._add(Principal(SYSTEM, SYSTEM_NAME, PrincipalKind.SYSTEM), None)
        for user in await self.auth.records(User):
            self._users[user.principal] = user
            if user.username not in self._principals:
                await self._add(_unwritten_principal(user), None)
        for principal in known.values():
            if principal.id not in self._users and principal.kind is not PrincipalKind.SYSTEM:
                await self._store_role(principal, AccessRole.of_kind(principal.kind))

    async def close(self) -> None:
        await self.auth.database.close()

    # Who

    def __iter__(self) -> Iterator[Principal]:
        return iter(self._principals.values())

    def __contains__(self, username: str) -> bool:
        return username in self._principals

    def __getitem__(self, username: str) -> Principal:
        """Raises KeyError if nobody has the name."""
        return self._principals[username]

    def names(self) -> dict[str, str]:
        """Username to id, of everybody."""
        return {one.username: one.id for one in self._principals.values()}

    def find(self, reference: str, *, missing: ErrorCode = ErrorCode.INVALID_PARAMS) -> Principal:
        """A known principal by username, id or prefix of an id.

        Args:
            missing: the code if there is nobody of that name.

        Raises:
            AntiphonError: `missing` or ambiguous_id.
        """
        known = self._by_id.get(reference)
        if known is not None:
            return known
        return self._by_id[resolve(reference, self.names(), what="principal", missing=missing)]

    async def principal(
        self,
        username: str,
        kind: PrincipalKind = PrincipalKind.HUMAN,
        role: AccessRole | None = None,
    ) -> Principal:
        """The principal of this name, made on first use, then with `role` or what its kind has.

        So is the role of somebody who was known as an author only.

        Raises:
            AntiphonError: invalid_params if the name cannot be one.
        """
        known = self._principals.get(username)
        if known is not None:
            if self.role_of(known) is AccessRole.AUTHOR:
                await self.give_role(known, role or AccessRole.of_kind(known.kind))
            return known
        return await run_uninterrupted(self._made(username, kind, role or AccessRole.of_kind(kind)))

    async def author(self, username: str, kind: PrincipalKind) -> Principal:
        """The principal of this name; whom nobody knows yet is known as an author only.

        Raises:
            AntiphonError: invalid_params if the name cannot be one.
        """
        return await run_uninterrupted(self._made(username, kind, AccessRole.AUTHOR))

    async def _made(self, username: str, kind: PrincipalKind, role: AccessRole) -> Principal:
        if not is_name(username):
            raise invalid_params(
                f"{quote(username)} cannot be a username: use at most {NAME_LENGTH} of a-z, 0-9, _"
                " and -, starting with a letter or digit.",
                found=truncate(username),
            )
        async with self._adding:
            known = self._principals.get(username)
            if known is not None:
                return known
            for user in self._users.values():
                if user.username == username:
                    return await self._add(_unwritten_principal(user), user.role)
            return await self._add(self._new(username, kind), role)

    async def set_display_name(self, principal: Principal, name: str) -> Principal:
        """From now on the principal wants to be called so; stored when this returns."""
        renamed = replace(self._by_id[principal.id], display_name=name)
        await self._journal.set_display_name(renamed)
        self._principals[renamed.username] = self._by_id[renamed.id] = renamed
        return renamed

    async def create_guest(self, name: str, role: AccessRole) -> Principal:
        """A new person, called `name` or, where that is taken, `name2`, `name3`, ..."""
        return await run_uninterrupted(self._create_guest(name, role))

    async def _create_guest(self, name: str, role: AccessRole) -> Principal:
        async with self._adding:
            taken = {*self._principals, *(user.username for user in self._users.values())}
            number, username = 1, name
            while username in taken:
                number += 1
                username = f"{name[: NAME_LENGTH - len(str(number))]}{number}"
            return await self._add(self._new(username, PrincipalKind.HUMAN), role)

    def _new(self, username: str, kind: PrincipalKind) -> Principal:
        return Principal(PrincipalId(self._ids.uuid7()), username, kind)

    async def _add(self, principal: Principal, role: AccessRole | None) -> Principal:
        # The role first: a crash in between must not leave a viewer with the rights of an editor.
        if role is not None and principal.id not in self._users:
            await self._store_role(principal, role)
        await self._journal.add_principal(principal, self._clock.now_ms())
        self._principals[principal.username] = self._by_id[principal.id] = principal
        return principal

    # What they may do

    def role_of(self, principal: Principal) -> AccessRole:
        """Return the current role of the principal in this kernel."""
        user = self._users.get(principal.id)
        return user.role if user is not None else AccessRole.of_kind(principal.kind)

    async def give_role(self, principal: Principal, role: AccessRole) -> None:
        """From now on the principal has this role; stored when this returns."""
        user = self._users.get(principal.id)
        if user is None:
            await self._store_role(principal, role)
        else:
            await self._change(user, lambda now: replace(now, role=role))

    async def ban(self, principal: Principal, until: int | None) -> None:
        """Let the principal in no more before this time; None: again from now on."""
        await self._change(self.user(principal), lambda now: replace(now, barred_until=until))

    async def record(self, by: Principal, what: str) -> None:
        """Write down what an owner has decided, for `antiphon log`."""
        await self.auth.add(Decision(self._clock.now_ms(), by.id, what))

    def banned_until(self, principal: Principal) -> int | None:
        """Milliseconds since the epoch; None if the principal may come in."""
        user = self._users.get(principal.id)
        until = user.barred_until if user is not None else None
        return until if until is not None and until > self._clock.now_ms() else None

    def user(self, principal: Principal) -> User:
        """The stored entry of everybody but the kernel itself.

        Raises:
            AntiphonError: invalid_params for the kernel.
        """
        found = self._users.get(principal.id)
        if found is None:
            raise invalid_params(
                f"{principal.username} is the kernel's own and comes in with nothing: name"
                " somebody else.",
                found=principal.username,
            )
        return found

    def of_user(self, number: int) -> Principal:
        """The principal behind a stored entry."""
        user = next(one for one in self._users.values() if one.number == number)
        return self._principals[user.username]

    async def _change(self, user: User, changed: Callable[[User], User]) -> None:
        # In effect before it is stored: while the disk is slow, nobody has a right too many.
        now = self._users[user.principal] = changed(self._users[user.principal])
        # Whoever changes their own role loses the session that they do it through.
        await run_uninterrupted(self.auth.change(now, "role", "barred_until"))

    async def _store_role(self, principal: Principal, role: AccessRole) -> None:
        now, name = self._clock.now_ms(), principal.username
        user = User(0, name, principal.id, role, now, principal.kind)
        self._users[principal.id] = await self.auth.add(user)


def _unwritten_principal(user: User) -> Principal:
    """Return the principal of a user whose entry in the journal could not be written."""
    return Principal(user.principal, user.username, user.kind)
