"""Who comes through a door: told by the transport, never by what a client says of itself."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import Headers, QueryParams

from antiphon_kernel.doors.scope import LEASH, TOKEN, VIA
from antiphon_kernel.doors.wrong_tokens import WrongTokens
from antiphon_kernel.kernel.access.invitations import NotAdmittedError, fingerprint_of
from antiphon_kernel.kernel.access.permissions import check_act_as
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import NAME_LENGTH, is_name
from antiphon_kernel.types.quoting import shown
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.wire.close_codes import CloseCode

CLIENT_HEADER: Final = "antiphon-client"
"""Header with the secret by which a program is known when it comes again by invitation."""

_SECRET_LENGTHS: Final = range(16, 201)


@dataclass(frozen=True, slots=True)
class Visit:
    """One session that came through a door, and what was asked for in the address."""

    actor: Actor
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Caller:
    """Whom the transport vouches for."""

    principal: Principal
    credential: int | None


class Access:
    """Lets in the owner (by the unix socket or the owner's token) and whoever is invited."""

    def __init__(self, kernel: Kernel, token: str) -> None:
        self._kernel = kernel
        self._owner_fingerprint = fingerprint_of(token)
        self._wrong_tokens = WrongTokens(kernel.clock)

    @asynccontextmanager
    async def session(self, scope: MutableMapping[str, Any]) -> AsyncIterator[Visit]:
        """A session for as long as the connection or request lasts, or until it is dismissed.

        Raises:
            NotAdmittedError: without a good token over TCP, as somebody who is kicked, or as
                somebody whom the caller may not act as.
        """
        query = QueryParams(scope["query_string"])
        via = scope[VIA]
        caller = _Caller(self._kernel.owner, None) if via == "unix" else await self._known(scope)
        principal = await self._acting_as(query.get("as"), caller)
        self._kernel.gate.check_welcome(principal)
        actor = self._kernel.open_session(principal, via, credential=caller.credential)
        if LEASH in scope:
            self._kernel.sessions.on_dismissal(actor.session, scope[LEASH].dismiss)
        try:
            yield Visit(actor, query)
        finally:
            await self._kernel.close_session(actor)

    async def _known(self, scope: MutableMapping[str, Any]) -> _Caller:
        """Who shows this token."""
        headers = Headers(scope=scope)
        token = scope.get(TOKEN)
        if token is None:
            scheme, _, value = headers.get("authorization", "").partition(" ")
            token = value.strip() if scheme.lower() == "bearer" else None
        if token is None:
            raise NotAdmittedError(
                CloseCode.UNAUTHORISED,
                "A token is needed: pass an invitation's, or the owner's from kernel.json, as"
                " ?token= or as a Bearer header.",
            )
        if hmac.compare_digest(fingerprint_of(token), self._owner_fingerprint):
            return _Caller(self._kernel.owner, None)
        secret = headers.get(CLIENT_HEADER)
        if secret is not None and len(secret) not in _SECRET_LENGTHS:
            raise NotAdmittedError(
                CloseCode.UNAUTHORISED,
                f"The header {CLIENT_HEADER} takes {_SECRET_LENGTHS[0]} to {_SECRET_LENGTHS[-1]}"
                f" characters, found {len(secret)}.",
            )
        try:
            principal, credential = await self._kernel.invitations.admit(token, secret)
        except NotAdmittedError as error:
            address = (scope.get("client") or ("",))[0]
            if self._wrong_tokens.too_many(address):
                raise NotAdmittedError(
                    CloseCode.TOO_MANY_WRONG_TOKENS,
                    "Too many wrong tokens came from this address: wait a minute, then use a"
                    " right one.",
                ) from error
            raise
        return _Caller(principal, credential.number)

    async def _acting_as(self, name: str | None, caller: _Caller) -> Principal:
        if name is None:
            return caller.principal
        if not is_name(name):
            raise NotAdmittedError(
                CloseCode.UNAUTHORISED,
                f"{shown(name)} cannot be a username: at most {NAME_LENGTH} small letters,"
                " digits, - and _ are allowed.",
            )
        try:
            check_act_as(name, caller.principal, self._kernel.owner)
        except AntiphonError as error:
            raise NotAdmittedError(CloseCode.UNAUTHORISED, error.message) from error
        return await self._kernel.principal(name)
