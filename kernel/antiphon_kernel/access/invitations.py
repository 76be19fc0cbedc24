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
from antiphon_kernel.types.ids import as_name
from antiphon_kernel.types.public_keys import CertAuthority, KeyCertificate
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
    CredentialKind.SSH_AUTHORITY: "authority",
}
"""The word for a credential in sentences."""

_KINDS: Final = {CredentialKind.SSH_KEY: "a guest", CredentialKind.SSH_AUTHORITY: "an authority"}


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
        self._credentials: dict[int, Credential] = {}
        self._clients: dict[tuple[int, str], Client] = {}
        self._counting = asyncio.Lock()

    async def load(self) -> None:
        """Read what is stored."""
        for credential in await self._members.auth.credentials():
            self._credentials[credential.number] = credential
        for client in await self._members.auth.clients():
            self._clients[client.credential, client.secret] = client

    def all(self) -> list[Credential]:
        """Every invitation that was ever made, oldest first."""
        return [one for one in self._credentials.values() if one.kind is CredentialKind.TOKEN]

    def ssh_keys(self) -> list[Credential]:
        """Every SSH key and authority that ever let somebody in, oldest first."""
        kinds = (CredentialKind.SSH_KEY, CredentialKind.SSH_AUTHORITY)
        return [one for one in self._credentials.values() if one.kind in kinds]

    def key(self, fingerprint: str) -> Credential | None:
        """Return the SSH key or authority of a fingerprint, whether it is good or not."""
        return next((one for one in self.ssh_keys() if one.fingerprint == fingerprint), None)

    def authority_of(self, number: int | None) -> str | None:
        """Return the fingerprint of the authority without which a credential counts for nothing."""
        by = None if number is None else self._credentials[number].authority
        return None if by is None else self._credentials[by].fingerprint

    def certified_by(self, authorities: Iterable[int]) -> list[int]:
        """Return the numbers of the keys that count for nothing without one of these."""
        among = set(authorities)
        return [one.number for one in self._credentials.values() if one.authority in among]

    async def add_key(
        self, fingerprint: str, principal: Principal, expires: int | None
    ) -> Credential:
        """Let in whoever has an SSH key as a principal; also again, after it was revoked.

        Args:
            expires: milliseconds since the epoch.

        Raises:
            AntiphonError: invalid_params if it is somebody else's, or an authority's.
        """
        user, now = self._members.user(principal).number, self._clock.now_ms()
        known = self.key(fingerprint)
        if known is None:
            return await self._add_ssh(
                self._ssh(CredentialKind.SSH_KEY, user, fingerprint, expires)
            )
        self._check_kind(known, CredentialKind.SSH_KEY)
        if known.user != user and self.is_good(known):
            raise invalid_params(
                f"The key {fingerprint} is that of {self._members.of_user(known.user).username}:"
                " key.revoke takes it from them.",
                field="key",
            )
        return await self._renew(
            replace(
                known,
                user=user,
                created=now,
                expires=expires,
                revoked=None,
                authority=None,
                principals=None,
            )
        )

    async def add_authority(
        self,
        authority: CertAuthority,
        role: AccessRole,
        by: Principal,
        expires: int | None,
    ) -> Credential:
        """Let in whoever comes with a certificate of an authority; also again.

        Args:
            role: of those who come for the first time.
            expires: milliseconds since the epoch.

        Raises:
            AntiphonError: invalid_params if its key is one that somebody comes in with.
        """
        fingerprint, user = authority.key.fingerprint, self._members.user(by).number
        names = authority.principals
        added = replace(
            self._ssh(CredentialKind.SSH_AUTHORITY, user, fingerprint, expires),
            principals=None if names is None else ",".join(names),
            role=role,
        )
        known = self.key(fingerprint)
        if known is None:
            return await self._add_ssh(added)
        self._check_kind(known, CredentialKind.SSH_AUTHORITY)
        return await self._renew(replace(added, number=known.number))

    def _check_kind(self, known: Credential, kind: CredentialKind) -> None:
        if known.kind is not kind:
            raise invalid_params(
                f"{known.fingerprint} is known here as that of {_KINDS[known.kind]} already, and"
                f" cannot be that of {_KINDS[kind]}: use another.",
                field="key",
            )

    def _ssh(
        self, kind: CredentialKind, user: int, fingerprint: str, expires: int | None
    ) -> Credential:
        return Credential(
            number=0,
            user=user,
            kind=kind,
            fingerprint=fingerprint,
            named=True,
            created=self._clock.now_ms(),
            expires=expires,
            revoked=None,
            uses_allowed=None,
            uses=0,
        )

    async def _add_ssh(self, credential: Credential) -> Credential:
        added = await self._members.auth.add_credential(credential)
        self._credentials[added.number] = added
        return added

    async def _renew(self, credential: Credential) -> Credential:
        await self._members.auth.renew(credential)
        self._credentials[credential.number] = credential
        return credential

    def check_key(self, fingerprint: str, certificate: KeyCertificate | None) -> Credential | None:
        """Return the credential of a key; None for a key that comes with its first certificate.

        A key that an owner has let in counts by itself. Any other counts with certificates only.

        Raises:
            AuthenticationError: the key is nobody's, expired or revoked, or it counts with a
                certificate only and this is none that counts.
        """
        found = self.key(fingerprint)
        if found is not None and found.kind is CredentialKind.SSH_KEY and found.authority is None:
            self.check_usable(found.number)
            if certificate is not None:
                self._check_certificate(certificate)
            return found
        if certificate is None:
            raise AuthenticationError(
                CloseCode.UNAUTHORISED,
                f"The key {fingerprint} is not known here: ask the owner to let it in.",
            )
        authority, name = self._check_certificate(certificate)
        if found is not None:
            self._check_kind(found, CredentialKind.SSH_KEY)
            self._check_not_revoked(found)
            return found
        self._user_called(authority, name)
        return None

    async def authenticate_key(
        self, fingerprint: str, certificate: KeyCertificate | None = None
    ) -> tuple[Principal, Credential]:
        """Return the principal and the credential of a key.

        Whoever comes with a certificate for the first time is whom its authority has called so
        before, or somebody new.

        Raises:
            AuthenticationError: as of check_key.
        """
        async with self._counting:
            found = self.check_key(fingerprint, certificate)
            if certificate is not None and (found is None or found.authority is not None):
                found = await run_uninterrupted(self._certified(fingerprint, certificate, found))
            assert found is not None
            self.check_usable(found.number)
            return self._members.of_user(found.user), found

    async def _certified(
        self, fingerprint: str, certificate: KeyCertificate, found: Credential | None
    ) -> Credential:
        """Store with which authority's certificates a key counts: that of the last one."""
        authority, name = self._check_certificate(certificate)
        if found is not None:
            if found.authority == authority.number:
                return found
            return await self._renew(replace(found, authority=authority.number, principals=name))
        user = self._user_called(authority, name)
        if user is None:
            assert authority.role is not None
            guest = await self._members.create_guest(as_name(name) or GUEST, authority.role)
            user = self._members.user(guest).number
        added = self._ssh(CredentialKind.SSH_KEY, user, fingerprint, None)
        return await self._add_ssh(replace(added, authority=authority.number, principals=name))

    def _check_certificate(self, certificate: KeyCertificate) -> tuple[Credential, str]:
        """Return the authority, and the name that a certificate gives."""
        authority = self.key(certificate.authority)
        if authority is None or authority.kind is not CredentialKind.SSH_AUTHORITY:
            raise AuthenticationError(
                CloseCode.UNAUTHORISED,
                f"The authority {certificate.authority} is not known here: ask the owner.",
            )
        self.check_usable(authority.number)
        allowed = None if authority.principals is None else authority.principals.split(",")
        for name in certificate.principals:
            if allowed is None or name in allowed:
                return authority, name
        raise AuthenticationError(
            CloseCode.UNAUTHORISED,
            f"The certificate names nobody whom {certificate.authority} may let in: ask the owner.",
        )

    def _user_called(self, authority: Credential, name: str) -> int | None:
        """Return whom an authority has called so; None if nobody.

        Raises:
            AuthenticationError: all keys of theirs have been revoked.
        """
        theirs = [
            one
            for one in self._credentials.values()
            if one.authority == authority.number and one.principals == name
        ]
        good = [one for one in theirs if one.revoked is None]
        if theirs and not good:
            self._check_not_revoked(theirs[-1])
        return good[0].user if good else None

    def is_good(self, credential: Credential) -> bool:
        """Return whether somebody can come in with a credential now."""
        expires, by = credential.expires, credential.authority
        if credential.revoked is not None or (by and not self.is_good(self._credentials[by])):
            return False
        return expires is None or expires > self._clock.now_ms()

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
        credential = await self._members.auth.add_credential(
            Credential(
                number=0,
                user=self._members.user(principal).number,
                kind=CredentialKind.TOKEN,
                fingerprint=fingerprint_of(token),
                named=name is not None,
                created=self._clock.now_ms(),
                expires=expires,
                revoked=None,
                uses_allowed=uses,
                uses=0,
            )
        )
        self._credentials[credential.number] = credential
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
        revoked = [number for number in numbers if self._credentials[number].revoked is None]
        for number in revoked:
            self._credentials[number] = replace(self._credentials[number], revoked=now)
        # All of them: an earlier attempt may have failed at the disk.
        await run_uninterrupted(self._store_revoked(numbers, now))
        return revoked

    async def _store_revoked(self, numbers: Iterable[int], now: int) -> None:
        for number in numbers:
            await self._members.auth.revoke(number, self._credentials[number].revoked or now)

    def credential(self, number: int) -> Credential:
        """Return an invitation or a key as it is now: a certified one lasts as its authority."""
        found = self._credentials[number]
        if found.authority is None:
            return found
        by = self._credentials[found.authority]
        return replace(found, expires=by.expires, revoked=found.revoked or by.revoked)

    def of(self, principal: Principal) -> list[int]:
        """Numbers of the invitations that a principal came or could come in with."""
        user = self._members.user(principal).number
        own = {
            one.number
            for one in self._credentials.values()
            if one.user == user and one.kind is not CredentialKind.SSH_AUTHORITY
        }
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
        for credential in self._credentials.values():
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
        found = self._credentials[number]
        self._check_not_revoked(found)
        if found.authority is not None:
            self.check_usable(found.authority)
        if found.expires is not None and found.expires <= self._clock.now_ms():
            raise AuthenticationError(CloseCode.UNAUTHORISED, expired(found))

    def _check_not_revoked(self, credential: Credential) -> None:
        if credential.revoked is not None:
            what, at = _WORDS[credential.kind], iso_time(credential.revoked)
            raise AuthenticationError(
                CloseCode.REVOKED, f"The {what} was revoked at {at}: ask for another."
            )

    async def _count(self, number: int, secret: str | None) -> tuple[Principal, Credential]:
        """One more client uses the invitation."""
        credential = self._credentials[number]
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
        credential = self._credentials[number]
        credential = self._credentials[number] = replace(credential, uses=credential.uses + 1)
        client = None
        if hashed is not None:
            user = self._members.user(principal).number
            client = Client(number, hashed, user, self._clock.now_ms())
            self._clients[number, hashed] = client
        await self._members.auth.count_use(credential, client)
        return principal, credential
