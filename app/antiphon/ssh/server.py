"""The SSH server: public keys only, one kind of session, and no forwarding of any kind."""

from __future__ import annotations

import logging
from typing import Final

import asyncssh

from antiphon.ssh.guest_session import GuestSession, SessionContext
from antiphon.ssh.kernel_link import OfferedKey
from antiphon_kernel.types.errors import AntiphonError

LOGIN_SECONDS: Final = 20.0
"""How long a connection may take to authenticate; whoever types a passphrase has time for it."""

STRANGERS: Final = 40
"""GuestConnections that have not authenticated; of more, the oldest is dropped."""

CONNECTIONS: Final = 100
"""GuestConnections that have."""

ATTEMPTS: Final = 12
"""Keys that a connection may offer."""

SESSIONS_EACH: Final = 10
"""Sessions that one connection may have at a time."""

_KEEPALIVE_SECONDS: Final = 15
_KEEPALIVE_COUNT: Final = 3
_WINDOW: Final = 128 * 1024
"""Bytes that a client may send before they have been taken."""

_log = logging.getLogger(__name__)


class GuestConnections:
    """Everybody who is connected. Belongs to one event loop."""

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self._strangers: dict[GuestConnection, None] = {}
        self._guests: set[GuestConnection] = set()

    def add(self, one: GuestConnection) -> None:
        """Take note of a connection, at the expense of the oldest that has not authenticated."""
        self._strangers[one] = None
        if len(self._strangers) > STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()

    def admit(self, one: GuestConnection) -> None:
        """Count a connection among those that have authenticated, if there is room."""
        self._strangers.pop(one, None)
        if len(self._guests) >= CONNECTIONS:
            one.abort()
            return
        self._guests.add(one)

    def discard(self, one: GuestConnection) -> None:
        self._strangers.pop(one, None)
        self._guests.discard(one)


class GuestConnection(asyncssh.SSHServer):
    """One connection, and the key that has been verified on it."""

    def __init__(self, connections: GuestConnections) -> None:
        self._connections = connections
        self._connection: asyncssh.SSHServerConnection
        self._attempts = 0
        self._key: OfferedKey | None = None
        """The key whose signature has been verified."""
        self._offered: OfferedKey | None = None
        """The key of the request that is being looked at, once it may be tried."""
        self._claimed = ""
        """The user name that the client says: a wish of somebody unknown, and nothing else."""
        self._sessions: set[GuestSession] = set()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(self)
        validate = conn.validate_public_key

        async def verified(username: str, key_data: bytes, msg: bytes, signature: bytes) -> bool:
            """Keep the key of a verified signature: only that says who somebody is."""
            self._offered = None
            is_valid = await validate(username, key_data, msg, signature)
            if is_valid and msg:
                self._key = self._offered
            return is_valid and (not msg or self._key is not None)

        conn.validate_public_key = verified  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)

    def abort(self) -> None:
        self._connection.abort()

    # Who it is

    def begin_auth(self, username: str) -> bool:
        """Say that everybody has to authenticate, whatever name they say."""
        self._claimed = username
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Say whether a key may be tried: known to the kernel, or one that owners are asked about.

        The name plays no part in it, and nobody comes in with a certificate.
        """
        self._attempts += 1
        if self._attempts > ATTEMPTS:
            self.abort()
            return False
        line = key.export_public_key("openssh").decode("ascii", "replace").strip()
        offered, context = OfferedKey(line, key.get_fingerprint()), self._connections.context
        try:
            refused = await context.link.refusal(offered)
        except AntiphonError as error:
            _log.warning("%s cannot be looked up: %s", offered.fingerprint, error.message)
            return False
        if refused is not None and not context.ask:
            _log.info("%s is refused: %s", offered.fingerprint, refused)
            return False
        self._offered = offered
        return True

    def auth_completed(self) -> None:
        self._connections.admit(self)

    # What it wants: a session. All else stays refused, as the base class has it.

    def session_requested(self) -> tuple[asyncssh.SSHServerChannel[bytes], GuestSession] | bool:
        if self._key is None or len(self._sessions) >= SESSIONS_EACH:
            return False
        session = GuestSession(
            self._connections.context, self._key, self._claimed, self._sessions.discard
        )
        self._sessions.add(session)
        channel = self._connection.create_server_channel(None, "strict", _WINDOW)
        session.accept_environment_of(channel)
        return channel, session


async def listen(
    context: SessionContext, host_key: asyncssh.SSHKey, bind: str, port: int
) -> asyncssh.SSHAcceptor:
    """Listen for guests.

    Raises:
        OSError: if the port is taken, or there is no such interface.
    """
    connections = GuestConnections(context)

    def accept() -> asyncssh.SSHServer:
        return GuestConnection(connections)

    return await asyncssh.create_server(
        accept,
        bind,
        port,
        backlog=256,
        server_host_keys=[host_key],
        server_version="antiphon",
        public_key_auth=True,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,
        gss_auth=False,
        gss_kex=False,
        agent_forwarding=False,
        x11_forwarding=False,
        allow_scp=False,
        compression_algs=["none"],
        line_editor=False,
        login_timeout=LOGIN_SECONDS,
        keepalive_interval=_KEEPALIVE_SECONDS,
        keepalive_count_max=_KEEPALIVE_COUNT,
        encoding=None,
    )
