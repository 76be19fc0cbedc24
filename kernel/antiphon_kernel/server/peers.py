"""Kernels of one cluster as each other's clients: each shows the secret that all of them have, and
states for whom it speaks, which is believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from antiphon_kernel.access import AuthenticationError
from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.ids import SessionId
from antiphon_kernel.types.records import Actor

PEER_HEADER: Final = "antiphon-speaks-for"
"""Header of what comes from another kernel, with a `PeerStatement`."""

HAND_OVER_PATH: Final = ("peer", "hand-over")
"""Path of a WebSocket that asks for a tree; its number follows."""

CONNECT_SECONDS: Final = 2.0
"""How long a kernel may take to let another one in."""

_FRAMES_AHEAD: Final = 4
"""Frames of another kernel that are read before the client has taken the one before them."""


class PeerStatement(NamedTuple):
    """The session that another kernel speaks for."""

    username: str
    kind: PrincipalKind
    via: str
    credential: int | None
    lasts: bool
    within: SessionId | None

    @classmethod
    def of(cls, actor: Actor) -> PeerStatement:
        """Return what is stated for a session."""
        by = actor.principal
        return cls(by.username, by.kind, actor.via, actor.credential, actor.lasts, actor.within)

    def header(self) -> str:
        """Return it as the value of the header."""
        return json.dumps(self)

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> PeerStatement:
        """Return what a request of another kernel states."""
        try:
            username, kind, *rest = json.loads(headers[PEER_HEADER])
            return cls(username, PrincipalKind(kind), *rest)
        except (ValueError, TypeError) as error:
            raise AuthenticationError(
                f"The header {PEER_HEADER} cannot be read: kernels of one cluster are at most one"
                " release apart."
            ) from error


class PeerAddress(KernelAddress):
    """Another kernel, and for whom it is spoken to."""

    speaks_for: str

    @classmethod
    def of(cls, address: str, secret: str, actor: Actor | None = None) -> PeerAddress:
        """Return the kernel at an address, as a session asks something of it, or this kernel."""
        return cls(
            pid=0,
            kernel="",
            sync=f"{address}/sync",
            http=address,
            token=secret,
            speaks_for=PeerStatement.of(actor).header() if actor is not None else "",
        )

    @property
    def headers(self) -> dict[str, str]:
        """The headers by which it knows who speaks, and for whom."""
        return {**super().headers, PEER_HEADER: self.speaks_for}

    @property
    def options(self) -> dict[str, Any]:
        """How a WebSocket to it is kept: its lease says whether it lives, no answer to a ping."""
        options = {"open_timeout": CONNECT_SECONDS, "max_queue": _FRAMES_AHEAD}
        return {**options, "ping_interval": None}
