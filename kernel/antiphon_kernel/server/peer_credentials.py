"""User id of the peer process of a unix socket, as the operating system says it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket as sockets
import struct
from typing import Any, Final

_CREDENTIALS: Final = struct.Struct("3i")

_logger: Final = logging.getLogger("antiphon.access")


def peer_user(sock: Any) -> int | None:
    """User id of the process that connected; None where the system does not say."""
    option = getattr(sockets, "SO_PEERCRED", None)
    if option is None:
        return None
    _, user, _ = _CREDENTIALS.unpack(sock.getsockopt(sockets.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(user)


def is_own_user(user: int | None) -> bool:
    """Return whether a peer is the user of this process.

    Where the system does not say, the mode of the socket and of its folder has decided.
    """
    return user is None or user == os.geteuid()


def for_own_user(protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """`protocol`, dropping whoever is another user."""

    class OwnUserProtocol(protocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            user = peer_user(transport.get_extra_info("socket"))
            if not is_own_user(user):
                _logger.warning("user %s tried the unix socket and was dropped", user)
                assert isinstance(transport, asyncio.WriteTransport)
                transport.abort()

    return OwnUserProtocol
