"""Authentication of clients: by the transport, never by what they say of themselves, and only from
this machine, by the names that it has for itself.

A page in a browser reaches the loopback interface too. It cannot set `Host` or `Origin`: a page of
another origin says so, and a name that somebody else has pointed at this machine is in `Host`.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import Headers, QueryParams
from starlette.types import Scope

from antiphon_kernel.access import AuthenticationError, check_act_as, fingerprint_of
from antiphon_kernel.client.address import is_loopback
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.connections import (
    CONNECTION,
    GUARD,
    TCP,
    TOKEN,
    UNIX,
    VIA,
    Connections,
)
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.peers import PEER_HEADER, PeerStatement
from antiphon_kernel.server.rate_limits import ADDRESSES, BURST, SECONDS_EACH, Rates
from antiphon_kernel.types.enums import ANSWERING_KINDS, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, permission_denied
from antiphon_kernel.types.ids import NAME_LENGTH, PrincipalId, is_name
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.yjs.close_codes import CloseCode

CLIENT_HEADER: Final = "antiphon-client"
"""Header with the secret by which a program is known when it comes again by invitation."""

_QUEUE_SECONDS: Final = 2.0
"""How long somebody who connects often is made to wait, before they are turned away."""

_NO_TOKEN: Final = {
    "websocket": "A token is needed: pass an invitation's, or the owner's from kernel.json, as"
    " ?token= or as a Bearer header.",
    "http": "A token is needed: pass an invitation's, or the owner's from kernel.json, in a header"
    " `Authorization: Bearer TOKEN`; only a WebSocket takes it as ?token=.",
}
"""By the type of the scope."""

_SECRET_LENGTHS: Final = range(16, 201)


@dataclass(frozen=True, slots=True)
class AuthenticatedSession:
    """One session of a connection, and what was asked for in the address."""

    actor: Actor
    query: Mapping[str, str]
    is_guest: bool
    """Whether an invitation let it in, here and not at another kernel that speaks for it."""
    is_peer: bool = False
    """Whether another kernel speaks for it."""


ACT_AS_KINDS: Final = (
    PrincipalKind.HUMAN,
    *ANSWERING_KINDS,
    PrincipalKind.SOURCE,
)
"""Kinds of principal that the owner can act as; the kernel and the shell are not among them."""


class Authenticator:
    """Lets in the owner (by the unix socket or the owner's token) and whoever is invited."""

    def __init__(
        self, kernel: Kernel, token: str, connections: Connections, limits: ServerLimits
    ) -> None:
        self.visits = 0
        """How many sessions have begun."""
        self._kernel = kernel
        self._connections = connections
        self._limits = limits
        self._owner_fingerprint = fingerprint_of(token)
        self._peer_fingerprint: str | None = None
        self._wrong_tokens = Rates(1 / SECONDS_EACH, BURST, kernel.clock.monotonic, ADDRESSES)
        self._guests: Counter[PrincipalId] = Counter()
        self._arrivals = Rates(limits.connects_per_second, limits.connects_at_once)
        self._calls = Rates(limits.calls_per_second, limits.calls_at_once)

    def trust_peers(self, secret: str) -> None:
        """Believe from now on whoever shows the secret of the cluster."""
        self._peer_fingerprint = fingerprint_of(secret)

    def check_peer(self, headers: Headers) -> None:
        """Raise AuthenticationError unless a request comes from another kernel of the cluster."""
        expected = self._peer_fingerprint
        shown = fingerprint_of(headers.get("authorization", "").removeprefix("Bearer "))
        if expected is None or not hmac.compare_digest(shown, expected):
            raise AuthenticationError(
                "This is not the secret of the kernels on this database: only those are believed"
                " for whom they speak."
            )

    @asynccontextmanager
    async def session(self, scope: MutableMapping[str, Any]) -> AsyncIterator[AuthenticatedSession]:
        """A session for as long as the connection or request lasts, or until it is dismissed.

        Raises:
            AuthenticationError: without a good token over TCP, as somebody who is kicked, as
                somebody whom the caller may not act as, or because too many are connected.
        """
        query = QueryParams(scope["query_string"])
        via = scope[VIA]
        headers = Headers(scope=scope)
        if via != UNIX and PEER_HEADER in headers:
            self.check_peer(headers)  # nobody else has the header read
            stated = PeerStatement.read(headers)
            scope[CONNECTION].is_peer = True
            async with self._serving(scope, await self._opened_for(stated)) as actor:
                yield AuthenticatedSession(actor, query, is_guest=False, is_peer=True)
            return
        caller, credential, within = self._kernel.owner, None, None
        if via != UNIX:
            caller, credential, within = await self._authenticate(scope)
        principal = await self._acting_as(query.get("as"), query.get("kind"), caller)
        self._kernel.access.check_admission(principal)
        is_guest = credential is not None
        too_many = is_guest and self._guests[principal.id] >= self._limits.connections_each
        if via == TCP and (too_many or self._connections.is_full):
            who = "clients are" if not too_many else f"clients of {principal.username} are"
            raise AuthenticationError(
                f"{ErrorCode.RATE_LIMITED}: Too many {who} connected: come back later.",
                CloseCode.TRY_AGAIN_LATER,
            )
        actor = self._kernel.open_session(
            principal,
            within.via if within is not None else via,
            credential=credential,
            lasts=scope["type"] == "websocket" and "once" not in query,
            within=within.session if within is not None else None,
        )
        self._guests[principal.id] += is_guest
        try:
            async with self._serving(scope, actor):
                yield AuthenticatedSession(actor, query, is_guest)
        finally:
            self._guests[principal.id] -= is_guest

    @asynccontextmanager
    async def _serving(self, scope: MutableMapping[str, Any], actor: Actor) -> AsyncIterator[Actor]:
        """Keep a session that has begun until its connection or request is over."""
        self.visits += 1
        scope[CONNECTION].begin_session()
        self._kernel.sessions.on_dismissal(actor, scope[GUARD].dismiss)
        try:
            yield actor
        finally:
            self._connections.release(scope[CONNECTION])
            await self._kernel.close_session(actor)

    async def _opened_for(self, stated: PeerStatement) -> Actor:
        """Begin a session that another kernel has let in, unless this one would not."""
        await self._kernel.members.read_again()
        principal = await self._kernel.principal(stated.username, stated.kind)
        self._kernel.access.check_return(principal, stated.credential)
        return self._kernel.open_session(
            principal,
            stated.via,
            credential=stated.credential,
            lasts=stated.lasts,
            within=stated.within,
        )

    async def queue_up(self, visit: AuthenticatedSession) -> None:
        """Make somebody wait who connects again and again, so that the others need not.

        Raises:
            AntiphonError: rate_limited, if they would have to wait for long.
        """
        principal = visit.actor.principal
        delay = self._arrivals.take(principal.id, _QUEUE_SECONDS)
        if delay is None:
            raise AntiphonError(
                ErrorCode.RATE_LIMITED,
                f"{principal.username} connects too often: come back in a few seconds.",
            )
        if delay > 0:
            await asyncio.sleep(delay)

    async def before_call(self, visit: AuthenticatedSession) -> None:
        """Make a guest wait whose calls come faster than they may."""
        if visit.is_guest and (delay := self._calls.take(visit.actor.principal.id)):
            await asyncio.sleep(delay)

    async def _authenticate(
        self, scope: MutableMapping[str, Any]
    ) -> tuple[Principal, int | None, Actor | None]:
        """Return the principal of the token, the number of the credential that it came with, and
        the session over SSH whose token it is.
        """
        headers = Headers(scope=scope)
        # An address is written down in more places than a header: only where a browser cannot set
        # one, the token may stand there.
        token = scope.get(TOKEN) if scope["type"] == "websocket" else None
        if token is None:
            scheme, _, value = headers.get("authorization", "").partition(" ")
            token = value.strip() if scheme.lower() == "bearer" else None
        if token is None:
            raise AuthenticationError(_NO_TOKEN[scope["type"]])
        if hmac.compare_digest(fingerprint_of(token), self._owner_fingerprint):
            return self._kernel.owner, None, None
        over_ssh = self._kernel.ssh.find(token)
        if over_ssh is not None:
            return over_ssh.principal, over_ssh.credential, over_ssh
        secret = headers.get(CLIENT_HEADER)
        if secret is not None and len(secret) not in _SECRET_LENGTHS:
            raise AuthenticationError(
                f"The header {CLIENT_HEADER} takes {_SECRET_LENGTHS[0]} to {_SECRET_LENGTHS[-1]}"
                f" characters, found {len(secret)}."
            )
        try:
            principal, credential = await self._kernel.invitations.authenticate(token, secret)
        except AuthenticationError as error:
            address = (scope.get("client") or ("",))[0]
            if self._wrong_tokens.take(address, 0) is None:
                raise AuthenticationError(
                    "Too many wrong tokens came from this address: wait a minute, then use a"
                    " right one.",
                    CloseCode.TOO_MANY_WRONG_TOKENS,
                ) from error
            raise
        return principal, credential.number, None

    async def _acting_as(self, name: str | None, kind: str | None, caller: Principal) -> Principal:
        if kind is not None and (name is None or kind not in ACT_AS_KINDS):
            raise AuthenticationError(
                f"A kind is one of {', '.join(ACT_AS_KINDS)} and goes with the name to act as,"
                f" found {quote(kind)}."
            )
        if name is None:
            return caller
        if not is_name(name):
            raise AuthenticationError(
                f"{quote(name)} cannot be a username: at most {NAME_LENGTH} small letters,"
                " digits, - and _ are allowed."
            )
        try:
            check_act_as(name, caller, self._kernel.owner)
        except AntiphonError as error:
            raise AuthenticationError(error.message) from error
        wanted = PrincipalKind(kind) if kind is not None else PrincipalKind.HUMAN
        principal = await self._kernel.principal(name, wanted)
        if kind is not None and principal.kind is not wanted:
            raise AuthenticationError(
                f"{name} is a {principal.kind} and no {wanted}: choose another name."
            )
        return principal


def check_source(scope: Scope, *, is_public: bool) -> None:
    """Check the headers `Host` and `Origin` of a WebSocket or request that came over TCP.

    Any port is allowed, since SSH forwards ports under other numbers.

    Args:
        is_public: whether it came to a listener that has other names than this machine has for
            itself: pages of those may ask there.

    Raises:
        AntiphonError: permission_denied.
    """
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    for host in hosts or [""]:
        if not is_public and not is_loopback(f"//{host}"):
            raise permission_denied(
                f"The kernel answers as localhost or 127.0.0.1, not as {quote(host)}: use one of"
                " those in the address, and forward the port through SSH from another machine."
            )
    for origin in headers.getlist("origin"):
        # In another scheme, as in `tauri://localhost`, the name of an app stands there.
        is_web = origin.lower().startswith(("http://", "https://"))
        is_own = is_public and origin.partition("://")[2] in hosts
        if not (is_web and (is_own or is_loopback(origin))):
            raise permission_denied(
                f"Pages from {quote(origin)} are not answered, only those from this machine:"
                " serve the page from localhost, or send no Origin."
            )
