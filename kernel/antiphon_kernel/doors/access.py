"""Who comes through a door: told by the transport, never by what a client says of itself."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import Headers, QueryParams

from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import is_name
from antiphon_kernel.types.records import Actor, Principal

VIA: Final = "antiphon.via"
"""Key in an ASGI scope: which transport a request came over, `unix` or `tcp`."""


class UnauthorisedError(AntiphonError):
    """Nobody may come in like this."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.PERMISSION_DENIED, message)


@dataclass(frozen=True, slots=True)
class Visit:
    """One session that came through a door, and what was asked for in the address."""

    actor: Actor
    query: Mapping[str, str]


class Access:
    """Lets in the owner: by the unix socket, which only they can open, or with the token."""

    def __init__(self, kernel: Kernel, token: str) -> None:
        self._kernel = kernel
        self._token = token

    @asynccontextmanager
    async def session(self, scope: MutableMapping[str, Any]) -> AsyncIterator[Visit]:
        """A session for as long as the connection or request lasts.

        Raises:
            UnauthorisedError: without the owner's token over TCP, or as somebody who cannot exist.
        """
        query = QueryParams(scope["query_string"])
        via = scope[VIA]
        if via != "unix":
            self._check_token(query.get("token"), Headers(scope=scope).get("authorization"))
        actor = self._kernel.open_session(await self._principal(query.get("as")), via)
        try:
            yield Visit(actor, query)
        finally:
            await self._kernel.close_session(actor)

    def _check_token(self, in_address: str | None, in_header: str | None) -> None:
        token = in_address
        if token is None and in_header is not None:
            scheme, _, value = in_header.partition(" ")
            token = value.strip() if scheme.lower() == "bearer" else None
        if token is None:
            raise UnauthorisedError(
                "A token is needed: pass the one in kernel.json as ?token= or as a Bearer header."
            )
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            raise UnauthorisedError("The token is not this kernel's: read kernel.json again.")

    async def _principal(self, name: str | None) -> Principal:
        if name is None:
            return self._kernel.owner
        if not is_name(name):
            raise UnauthorisedError(
                f"{name!r} cannot be a username: small letters, digits, - and _ are allowed."
            )
        principal = await self._kernel.principal(name)
        if principal.kind is PrincipalKind.SYSTEM:
            raise UnauthorisedError("Nobody can act as the kernel itself: choose another name.")
        return principal
