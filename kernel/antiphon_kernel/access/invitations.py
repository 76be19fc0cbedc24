"""Everybody a kernel knows, the role of each, and the invitations and keys that let them in.

An invitation is a token that lets somebody in as a principal of their own, until it is revoked. The
token is shown once, when it is made; what is kept is its SHA-256. A program that comes in may name
a secret of its own, by which it is known when it comes again: that is one use, however often it
connects. One that names none uses the invitation anew with each connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.storage import (
    AuthStore,
    Client,
    Credential,
    Decision,
    Dismissal,
    Journal,
    StoredAccess,
    User,
)
from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.types.clock import Clock, iso_time
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
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
from antiphon_kernel.types.roles import AccessRole, CredentialKind
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.close_codes import CloseCode


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
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self.read = Signal[StoredAccess]()
        """Notified of changes by other kernels, once they are in effect here."""
        self._version = 0
        """Of the store when it was read last."""
        self._storing = asyncio.Lock()
        """Held by whoever stores what is in effect here already, or reads what is stored."""
        self.unsaved = Counter[object]()
        """Ids of principals and numbers of credentials that are ahead here of what is stored."""

    @classmethod
    async def open(
        cls, journal: Journal, place: Path | str, clock: Clock, ids: IdSource
    ) -> Members:
        """Read everybody from the journal and from `place`, where roles and credentials are."""
        members = cls(journal, await AuthStore.open(place), clock, ids)
        try:
            async with members.auth.database.alone("principals"):
                members._version = await members.auth.version()
                await members._load({one.username: one for one in await journal.principals()})
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

    def find(self, reference: str, *, missing: ErrorCode = ErrorCode.INVALID_PARAMS) -> Principal:
        """A known principal by username, id or prefix of an id.

        Raises AntiphonError ambiguous_id, or `missing` if there is nobody of that name.
        """
        known = self._by_id.get(reference)
        if known is not None:
            return known
        names = {one.username: one.id for one in self}
        return self._by_id[resolve(reference, names, what="principal", missing=missing)]

    async def look_up(
        self, reference: str, *, missing: ErrorCode = ErrorCode.INVALID_PARAMS
    ) -> Principal:
        """Return the same, also if another kernel has made the principal a moment ago."""
        try:
            return self.find(reference, missing=missing)
        except AntiphonError:
            await self.read_again()
            return self.find(reference, missing=missing)

    async def principal(
        self,
        username: str,
        kind: PrincipalKind = PrincipalKind.HUMAN,
        role: AccessRole | None = None,
    ) -> Principal:
        """The principal of this name, made on first use, then with `role` or what its kind has.

        So is the role of somebody who was known as an author only, unless `role` is just that.
        Raises AntiphonError invalid_params if the name cannot be one.
        """
        found = self._principals.get(username)
        if found is None:
            made = self._create(username, kind, role or AccessRole.of_kind(kind))
            found = await run_uninterrupted(made)
        if role is not AccessRole.AUTHOR and self.role_of(found) is AccessRole.AUTHOR:
            await self.give_role(found, role or AccessRole.of_kind(found.kind))
        return found

    async def principal_of_kind(self, name: str, kind: PrincipalKind) -> Principal:
        """Return the principal of a program; it gets a number if somebody else has the name."""
        numbers = count(2)
        principal = await self.principal(name, kind)
        while principal.kind is not kind:
            principal = await self.principal(f"{name}-{next(numbers)}", kind)
        return principal

    async def create_guest(self, name: str, role: AccessRole) -> Principal:
        """A new person, called `name` or, where that is taken, `name2`, `name3`, ..."""
        return await run_uninterrupted(self._create(name, PrincipalKind.HUMAN, role, is_guest=True))

    async def _create(
        self, username: str, kind: PrincipalKind, role: AccessRole, *, is_guest: bool = False
    ) -> Principal:
        if not is_name(username):
            raise invalid_params(
                f"{quote(username)} cannot be a username: use at most {NAME_LENGTH} of a-z, 0-9, _"
                " and -, starting with a letter or digit.",
                found=truncate(username),
            )
        async with self.alone("principals"):
            users = {user.username: user for user in self._users.values()}
            name, number = username, 1
            while is_guest and (username in self._principals or username in users):
                number += 1
                username = f"{name[: NAME_LENGTH - len(str(number))]}{number}"
            if (known := self._principals.get(username)) is not None:
                return known
            if (user := users.get(username)) is not None:
                return await self._add(_unwritten_principal(user), user.role)
            return await self._add(Principal(PrincipalId(self._ids.uuid7()), username, kind), role)

    async def set_display_name(self, principal: Principal, name: str) -> None:
        """From now on the principal wants to be called so; stored when this returns."""
        renamed = replace(self._by_id[principal.id], display_name=name)
        await self._journal.set_display_name(renamed)
        self._principals[renamed.username] = self._by_id[renamed.id] = renamed
        self.auth.changed.notify()

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

    async def give_role(
        self, principal: Principal, role: AccessRole, ending: Dismissal | None = None
    ) -> None:
        """From now on the principal has this role; stored when this returns, with what it ends."""
        if principal.id in self._users:
            await self._change(self._users[principal.id], ending, role=role)
        else:
            await self._store_role(principal, role)

    async def ban(
        self, principal: Principal, until: int | None, ending: Dismissal | None = None
    ) -> None:
        """Let the principal in no more before this time; None: again from now on."""
        await self._change(self.user(principal), ending, barred_until=until)

    async def record(self, by: Principal, what: str) -> None:
        """Write down what an owner has decided, for `antiphon log`."""
        await self.auth.add(Decision(self._clock.now_ms(), by.id, what))

    def banned_until(self, principal: Principal) -> int | None:
        """Milliseconds since the epoch; None if the principal may come in."""
        user = self._users.get(principal.id)
        until = user.barred_until if user is not None else None
        return until if until is not None and until > self._clock.now_ms() else None

    def user(self, principal: Principal) -> User:
        """Return what is stored of a principal; raises invalid_params for the kernel itself."""
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

    def epoch_of(self, principal: PrincipalId) -> int | None:
        """Return how often what a principal may do has changed, as far as is known here."""
        user = self._users.get(principal)
        return user.epoch if user is not None else None

    async def _change(self, user: User, ending: Dismissal | None, **fields: Any) -> None:
        # In effect before it is stored: while the disk is slow, nobody has a right too many.
        now = self._users[user.principal] = replace(user, **fields)
        # Whoever changes their own role loses the session that they do it through.
        change = self.auth.change(now, "role", "barred_until", users=[now.number], ending=ending)
        await self.save([now.principal], change)

    async def save(self, unsaved: Iterable[object], change: Awaitable[None]) -> None:
        """Store what is in effect already, uninterrupted, and know what else has been stored."""
        self.unsaved.update(unsaved)

        async def save() -> None:
            try:
                async with self._storing:
                    await change
            finally:
                self.unsaved -= Counter(unsaved)
            await self.read_again()

        await run_uninterrupted(save())

    # Other kernels

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        """Let nobody else add what has this name, here or elsewhere, and know what others have."""
        async with self._locks[what], self.auth.database.alone(what):
            await self.read_again()
            yield

    async def read_again(self) -> None:
        """Let what other kernels have stored be in effect here too."""
        if not self.auth.database.is_shared:
            return
        async with self._storing:
            while (version := await self.auth.version()) != self._version:
                principals = await self._journal.principals()
                stored = await self.auth.everything(since=self._version)
                if version == await self.auth.version():
                    self._take_over(principals, stored)
                    self._version = version

    def _take_over(self, principals: Iterable[Principal], stored: StoredAccess) -> None:
        for principal in principals:
            self._principals[principal.username] = self._by_id[principal.id] = principal
        for user in stored.users:
            if not self.unsaved[user.principal]:
                self._users[user.principal] = user
        self.read.notify(stored)

    async def _store_role(self, principal: Principal, role: AccessRole) -> None:
        now, name = self._clock.now_ms(), principal.username
        user = User(0, name, principal.id, role, now, principal.kind)
        self._users[principal.id] = await self.auth.add(user)


def _unwritten_principal(user: User) -> Principal:
    """Return the principal of a user whose entry in the journal could not be written."""
    return Principal(user.principal, user.username, user.kind)


TOKEN_BYTES: Final = 32
"""Randomness of a token."""

GUEST: Final = "guest"
"""The username of people whom nobody has named."""


class AuthenticationError(AntiphonError):
    """Nobody is let in with this; `close_code` is how a connection says so."""

    def __init__(self, message: str, close_code: CloseCode = CloseCode.UNAUTHORISED) -> None:
        code = ErrorCode.PERMISSION_DENIED
        if close_code is CloseCode.TOO_MANY_WRONG_TOKENS:
            code = ErrorCode.RATE_LIMITED
        super().__init__(code, message)
        self.close_code = close_code


@dataclass(frozen=True, slots=True)
class Issued:
    """A new invitation. The token is nowhere else."""

    token: str
    credential: Credential
    principal: Principal


def fingerprint_of(token: str) -> str:
    """Return the stored fingerprint of a token or of a client's secret."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


_WORDS: Final = {
    CredentialKind.TOKEN: "invitation",
    CredentialKind.SSH_KEY: "key",
}
"""The word for a credential in sentences."""


def expired(credential: Credential) -> str:
    """Return the sentence that says that a credential is over."""
    at = iso_time(credential.expires or 0)
    return f"The {_WORDS[credential.kind]} expired at {at}: ask for another."


class Invitations:
    """Every credential of a kernel that is not its owner's token: invitations, and SSH keys."""

    def __init__(self, members: Members, clock: Clock, most_clients: int) -> None:
        """`most_clients` may come in with an invitation that allows any number."""
        self._members = members
        self._most_clients = most_clients
        self._clock = clock
        self.credentials: dict[int, Credential] = {}
        """Every invitation and every key as it is now, by number."""
        self._clients: dict[tuple[int, str], Client] = {}
        members.read.listen(self._take_over)

    async def load(self) -> None:
        """Read what is stored."""
        self._take_over(await self._members.auth.everything())

    def _take_over(self, stored: StoredAccess) -> None:
        for credential in stored.credentials:
            if not self._members.unsaved[credential.number]:
                self.credentials[credential.number] = credential
        for client in stored.clients:
            self._clients[client.credential, client.secret] = client

    def of_kind(self, kind: CredentialKind) -> list[Credential]:
        """Return every invitation that was ever made, or every SSH key, oldest first."""
        # What another kernel has made may be heard of later than what was made here after it.
        found = (one for one in self.credentials.values() if one.kind is kind)
        return sorted(found, key=lambda one: one.number)

    def key(self, fingerprint: str) -> Credential | None:
        """Return the SSH key of a fingerprint, whether it is good or not."""
        keys = self.of_kind(CredentialKind.SSH_KEY)
        return next((one for one in keys if one.fingerprint == fingerprint), None)

    async def add_key(self, fingerprint: str, principal: Principal, expires: int | None) -> None:
        """Let in whoever has an SSH key as a principal until `expires`; also after it was revoked.

        Raises AntiphonError invalid_params if it is somebody else's.
        """
        user, now = self._members.user(principal).number, self._clock.now_ms()
        async with self._members.alone("credentials"):
            known = self.key(fingerprint)
            if known is None:
                kind = CredentialKind.SSH_KEY
                await self._add(Credential(0, user, kind, fingerprint, True, now, expires))
                return
            if known.user != user and self.is_good(known):
                owner = self._members.of_user(known.user).username
                raise invalid_params(
                    f"The key {fingerprint} is that of {owner}: key.revoke takes it from them.",
                    field="key",
                )
            credential = replace(known, user=user, created=now, expires=expires, revoked=None)
            await self._members.auth.change(credential, "user", "created", "expires", "revoked")
            self.credentials[credential.number] = credential

    async def _add(self, new: Credential) -> Credential:
        credential = await self._members.auth.add(new)
        self.credentials[credential.number] = credential
        return credential

    def check_key(self, fingerprint: str) -> Credential:
        """Return the credential of a key; raises AuthenticationError unless it is good."""
        found = self.key(fingerprint)
        if found is None:
            raise AuthenticationError(
                f"The key {fingerprint} is not known here: ask the owner to let it in."
            )
        self.check_usable(found.number)
        return found

    def is_good(self, credential: Credential) -> bool:
        """Return whether somebody can come in with a credential now."""
        expires = credential.expires
        return credential.revoked is None and (expires is None or expires > self._clock.now_ms())

    async def invite(
        self,
        role: AccessRole,
        kind: PrincipalKind = PrincipalKind.HUMAN,
        *,
        name: str | None,
        expires: int | None,
        uses: int | None,
    ) -> Issued:
        """Make an invitation.

        Args:
            kind: of whoever comes.
            name: username of whoever comes; made now if nobody has it. Without one the kernel
                chooses a name, and another one for each further client.
            expires: milliseconds since the epoch.
            uses: how many clients it lets in.

        Raises:
            AntiphonError: invalid_params if the name is taken by somebody of another role or kind.
        """
        if name is None:
            principal = await self._members.create_guest(GUEST, role)
        else:
            principal = await self._members.principal(name, kind, role)
        has = self._members.role_of(principal)
        if (principal.kind, has) != (kind, role):
            is_person = principal.kind is PrincipalKind.HUMAN
            what = has.described() if is_person else f"a {principal.kind}"
            raise invalid_params(
                f"{principal.username} is {what} already and cannot be invited as"
                f" {role.described()}: choose another name, or change the role with kernel.role.",
                username=principal.username,
                role=str(has),
            )
        token = secrets.token_urlsafe(TOKEN_BYTES)
        about = self._members.user(principal).number, CredentialKind.TOKEN, fingerprint_of(token)
        now, is_named = self._clock.now_ms(), name is not None
        credential = await self._add(Credential(0, *about, is_named, now, expires, None, uses))
        return Issued(token, credential, principal)

    async def revoke(self, endings: Mapping[int, Dismissal]) -> list[int]:
        """Nobody comes in with these numbers any more; which of them were good until now.

        `endings` says what ends with each, at other kernels too.
        """
        numbers, now = list(endings), self._clock.now_ms()
        revoked = [number for number in numbers if self.credentials[number].revoked is None]
        for number in revoked:
            self.credentials[number] = replace(self.credentials[number], revoked=now)

        async def store() -> None:
            # All of them: an earlier attempt may have failed at the disk.
            for number in numbers:
                came = {one.user for one in self._clients.values() if one.credential == number}
                credential = self.credentials[number]
                users, ending = came | {credential.user}, endings[number]
                await self._members.auth.change(credential, "revoked", users=users, ending=ending)

        await self._members.save(numbers, store())
        return revoked

    def of(self, principal: Principal) -> list[int]:
        """Numbers of the invitations that a principal came or could come in with."""
        user = self._members.user(principal).number
        own = {one.number for one in self.credentials.values() if one.user == user}
        own |= {one.credential for one in self._clients.values() if one.user == user}
        return sorted(own)

    async def authenticate(self, token: str, secret: str | None) -> tuple[Principal, Credential]:
        """Return principal and credential of a token; raises AuthenticationError unless it is good.

        By its `secret`, if it names one, a program is known when it comes again.
        """
        credential = self._of_token(token)
        if credential is None:
            await self._members.read_again()
            credential = self._of_token(token)
        if credential is None:
            raise AuthenticationError("The token is not one of this kernel's: ask for another.")
        self.check_usable(credential.number)
        known = None
        if secret is not None:
            known = self._clients.get((credential.number, fingerprint_of(secret)))
        if known is None and (secret is not None or credential.uses_allowed is not None):
            async with self._members.alone("credentials"):
                self.check_usable(credential.number)
                return await self._count(credential.number, secret)
        user = known.user if known is not None else credential.user
        return self._members.of_user(user), credential

    def _of_token(self, token: str) -> Credential | None:
        credential, fingerprint = None, fingerprint_of(token)
        for one in self.credentials.values():
            # All of them, so that the time says nothing about how near a guess was.
            is_it = hmac.compare_digest(one.fingerprint, fingerprint)
            if is_it and one.kind is CredentialKind.TOKEN:
                credential = one
        return credential

    def check_usable(self, number: int) -> None:
        """Raise AuthenticationError if a credential was revoked or has expired."""
        found = self.credentials[number]
        if found.revoked is not None:
            what, at = _WORDS[found.kind], iso_time(found.revoked)
            raise AuthenticationError(
                f"The {what} was revoked at {at}: ask for another.", CloseCode.REVOKED
            )
        if found.expires is not None and found.expires <= self._clock.now_ms():
            raise AuthenticationError(expired(found))

    async def _count(self, number: int, secret: str | None) -> tuple[Principal, Credential]:
        """One more client uses the invitation."""
        credential = self.credentials[number]
        hashed = fingerprint_of(secret) if secret is not None else None
        if hashed is not None and (known := self._clients.get((number, hashed))) is not None:
            return self._members.of_user(known.user), credential
        allowed = credential.uses_allowed or self._most_clients
        if credential.uses >= allowed:
            raise AuthenticationError(
                f"The invitation, for {allowed}, is used up: ask for another."
            )
        first = self._members.of_user(credential.user)
        named_after = {one.user for one in self._clients.values() if one.credential == number}
        principal = first
        if not credential.named and hashed is not None and credential.user in named_after:
            principal = await self._members.create_guest(GUEST, self._members.role_of(first))
        # As it is now: it may have been revoked meanwhile.
        credential = self.credentials[number]
        credential = self.credentials[number] = replace(credential, uses=credential.uses + 1)
        client = None
        if hashed is not None:
            user = self._members.user(principal).number
            client = Client(number, hashed, user, self._clock.now_ms())
            self._clients[number, hashed] = client
        await self._members.auth.count_use(credential, client)
        return principal, credential
