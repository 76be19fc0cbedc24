"""Invitations: tokens that let somebody in as a principal of their own, until they are revoked.

A token is shown once, when it is made; what is kept is its SHA-256. A program that comes in may
name a secret of its own, by which it is known when it comes again: that is one use, however often
it connects. One that names none uses the invitation anew with each connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from antiphon_kernel.access.members import Members
from antiphon_kernel.storage import Client, Credential
from antiphon_kernel.types.clock import Clock, iso_time
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole, CredentialKind
from antiphon_kernel.uninterruptible import run_uninterrupted
from antiphon_kernel.yjs.close_codes import CloseCode

TOKEN_BYTES: Final = 32
"""Randomness of a token."""

GUEST: Final = "guest"
"""The username of people whom nobody has named."""


class AuthenticationError(AntiphonError):
    """Nobody is let in with this; `close_code` is how a connection says so."""

    def __init__(self, close_code: CloseCode, message: str) -> None:
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
        self._counting = asyncio.Lock()

    async def load(self) -> None:
        """Read what is stored."""
        for credential in await self._members.auth.records(Credential):
            self.credentials[credential.number] = credential
        for client in await self._members.auth.records(Client):
            self._clients[client.credential, client.secret] = client

    def all(self) -> list[Credential]:
        """Every invitation that was ever made, oldest first."""
        return [one for one in self.credentials.values() if one.kind is CredentialKind.TOKEN]

    def ssh_keys(self) -> list[Credential]:
        """Every SSH key that ever let somebody in, oldest first."""
        return [one for one in self.credentials.values() if one.kind is CredentialKind.SSH_KEY]

    def key(self, fingerprint: str) -> Credential | None:
        """Return the SSH key of a fingerprint, whether it is good or not."""
        return next((one for one in self.ssh_keys() if one.fingerprint == fingerprint), None)

    async def add_key(self, fingerprint: str, principal: Principal, expires: int | None) -> None:
        """Let in whoever has an SSH key as a principal; also again, after it was revoked.

        Args:
            expires: milliseconds since the epoch.

        Raises:
            AntiphonError: invalid_params if it is somebody else's.
        """
        user, now = self._members.user(principal).number, self._clock.now_ms()
        known = self.key(fingerprint)
        if known is None:
            await self._add(CredentialKind.SSH_KEY, principal, fingerprint, expires=expires)
            return
        if known.user != user and self.is_good(known):
            raise invalid_params(
                f"The key {fingerprint} is that of {self._members.of_user(known.user).username}:"
                " key.revoke takes it from them.",
                field="key",
            )
        credential = replace(known, user=user, created=now, expires=expires, revoked=None)
        await self._members.auth.change(credential, "user", "created", "expires", "revoked")
        self.credentials[credential.number] = credential

    async def _add(
        self,
        kind: CredentialKind,
        principal: Principal,
        fingerprint: str,
        *,
        expires: int | None,
        named: bool = True,
        uses: int | None = None,
    ) -> Credential:
        credential = await self._members.auth.add(
            Credential(
                number=0,
                user=self._members.user(principal).number,
                kind=kind,
                fingerprint=fingerprint,
                named=named,
                created=self._clock.now_ms(),
                expires=expires,
                revoked=None,
                uses_allowed=uses,
                uses=0,
            )
        )
        self.credentials[credential.number] = credential
        return credential

    def check_key(self, fingerprint: str) -> Credential:
        """Return the credential of a key.

        Raises:
            AuthenticationError: the key is nobody's, expired or revoked.
        """
        found = self.key(fingerprint)
        if found is None:
            raise AuthenticationError(
                CloseCode.UNAUTHORISED,
                f"The key {fingerprint} is not known here: ask the owner to let it in.",
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
        self._check_role(principal, role, kind)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        credential = await self._add(
            CredentialKind.TOKEN,
            principal,
            fingerprint_of(token),
            expires=expires,
            named=name is not None,
            uses=uses,
        )
        return Issued(token, credential, principal)

    def _check_role(self, principal: Principal, role: AccessRole, kind: PrincipalKind) -> None:
        has = self._members.role_of(principal)
        if principal.kind is kind and has is role:
            return
        what = has.described() if principal.kind is PrincipalKind.HUMAN else f"a {principal.kind}"
        raise invalid_params(
            f"{principal.username} is {what} already and cannot be invited as {role.described()}:"
            " choose another name, or change the role with kernel.role.",
            username=principal.username,
            role=str(has),
        )

    async def revoke(self, numbers: Iterable[int]) -> list[int]:
        """Nobody comes in with these any more; which of them were good until now."""
        numbers, now = list(numbers), self._clock.now_ms()
        revoked = [number for number in numbers if self.credentials[number].revoked is None]
        for number in revoked:
            self.credentials[number] = replace(self.credentials[number], revoked=now)
        # All of them: an earlier attempt may have failed at the disk.
        await run_uninterrupted(self._store_revoked(numbers))
        return revoked

    async def _store_revoked(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            await self._members.auth.change(self.credentials[number], "revoked")

    def of(self, principal: Principal) -> list[int]:
        """Numbers of the invitations that a principal came or could come in with."""
        user = self._members.user(principal).number
        own = {one.number for one in self.credentials.values() if one.user == user}
        own |= {one.credential for one in self._clients.values() if one.user == user}
        return sorted(own)

    async def authenticate(self, token: str, secret: str | None) -> tuple[Principal, Credential]:
        """Return the principal and the credential of a token.

        Args:
            secret: by which the program is known when it comes again, if it names one.

        Raises:
            AuthenticationError: the token is nobody's, expired, used up or revoked.
        """
        credential = self._is_usable(fingerprint_of(token))
        known = None
        if secret is not None:
            known = self._clients.get((credential.number, fingerprint_of(secret)))
        if known is None and (secret is not None or credential.uses_allowed is not None):
            async with self._counting:
                return await self._count(credential.number, secret)
        user = known.user if known is not None else credential.user
        return self._members.of_user(user), credential

    def _is_usable(self, fingerprint: str) -> Credential:
        found = None
        for credential in self.credentials.values():
            # All of them, so that the time says nothing about how near a guess was.
            is_it = hmac.compare_digest(credential.fingerprint, fingerprint)
            if is_it and credential.kind is CredentialKind.TOKEN:
                found = credential
        if found is None:
            raise AuthenticationError(
                CloseCode.UNAUTHORISED, "The token is not one of this kernel's: ask for another."
            )
        self.check_usable(found.number)
        return found

    def check_usable(self, number: int) -> None:
        """Raise AuthenticationError if a credential was revoked or has expired."""
        found = self.credentials[number]
        if found.revoked is not None:
            what, at = _WORDS[found.kind], iso_time(found.revoked)
            raise AuthenticationError(
                CloseCode.REVOKED, f"The {what} was revoked at {at}: ask for another."
            )
        if found.expires is not None and found.expires <= self._clock.now_ms():
            raise AuthenticationError(CloseCode.UNAUTHORISED, expired(found))

    async def _count(self, number: int, secret: str | None) -> tuple[Principal, Credential]:
        """One more client uses the invitation."""
        credential = self.credentials[number]
        hashed = fingerprint_of(secret) if secret is not None else None
        if hashed is not None and (known := self._clients.get((number, hashed))) is not None:
            return self._members.of_user(known.user), credential
        allowed = credential.uses_allowed or self._most_clients
        if credential.uses >= allowed:
            raise AuthenticationError(
                CloseCode.UNAUTHORISED,
                f"The invitation, for {allowed}, is used up: ask for another.",
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
