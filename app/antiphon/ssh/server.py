"""The SSH server: public keys only, sessions of guests, and no forwarding of any kind.

A session is a channel on one side, and a process on a terminal or pipes on the other.
"""

from __future__ import annotations

import logging
import re
import shlex
import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import asyncssh

from antiphon.hosts.host import HostListener
from antiphon.hosts.host_address import HostOptions
from antiphon.hosts.kernel_link import OfferedKey, OpenedSession
from antiphon.hosts.session import (
    TERMINAL,
    WRITE_BYTES,
    GuestSession,
    SessionContext,
)
from antiphon.time_format import format_relative
from antiphon_kernel.client.ownership import write_private
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.errors import AntiphonError, permission_denied, storage_failed

KEY_FILE: Final = "ssh.key"
"""The host key: readable by this user only, and the same from one start to the next."""

COMMANDS: Final = ("tail", "send", "export")
"""Commands of antiphon that a guest runs without a terminal; the kernel says what each may do."""

ASK_SECONDS: Final = 300.0
"""How long somebody unknown waits for an owner."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")

_log = logging.getLogger(__name__)


class _WantedVariables(dict[bytes, bytes]):
    """Environment of a channel: what the client sends and nobody wants is not kept."""

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if name == b"COLORTERM" and len(value) <= 64:
            super().__setitem__(name, value)


class SshSession(GuestSession, asyncssh.SSHServerSession[bytes]):
    """A session on a channel of an SSH connection."""

    def __init__(
        self,
        context: SessionContext,
        key: OfferedKey,
        claimed: str,
        closed: Callable[[SshSession], None],
    ) -> None:
        """`claimed` is the user name that the client says; `closed` is called at the end."""
        super().__init__(context)
        self._key = key
        self._claimed = claimed
        self._closed = closed
        self._command: str | None = None

    def accept_environment_of(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        """Let the channel keep only the variables that reach a session."""
        self.environment = channel._env = _WantedVariables()  # noqa: SLF001  unbounded otherwise

    # The client's wishes

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self.channel = chan
        chan.set_write_buffer_limits(WRITE_BYTES)

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: Mapping[int, int]
    ) -> bool:
        self.terminal = term_type if _WORD.fullmatch(term_type) else TERMINAL
        self.terminal_size_changed(*term_size)
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    # Its beginning and its end

    async def admit(self) -> OpenedSession:
        link = self.context.link
        if self.context.ask and await link.refusal(self._key) is not None:
            waits = "is not known here. Waiting for the owner to let you in …"
            self.say(f"{self._key.fingerprint} {waits}")
            if await link.ask(self._key.line, self._claimed, ASK_SECONDS) is None:
                raise permission_denied("You were not let in.")
        return await self.open(fingerprint=self._key.fingerprint)

    def arguments(self) -> tuple[str, ...] | None:
        if self._command is None:
            if self.terminal is None:
                raise permission_denied(
                    "The app needs a terminal: use ssh -t, or run one of the commands"
                    f" {', '.join(COMMANDS)}."
                )
            return None
        try:
            words = shlex.split(self._command)
        except ValueError:
            words = []
        words = words[1:] if words[:1] == ["antiphon"] else words
        if not words or words[0] not in COMMANDS:
            raise permission_denied(
                f"Only {', '.join(COMMANDS)} can be run here; without a command, the app is opened."
            )
        return tuple(words)

    def say(self, text: str) -> None:
        """Say a sentence to the guest: on their screen, or as an error of the command."""
        if not self.is_lost:
            end = "\r\n" if self.terminal is not None else "\n"
            kind = None if self.terminal is not None else asyncssh.EXTENDED_DATA_STDERR
            self.send(f"antiphon: {sanitize(format_relative(text))}{end}".encode(), kind)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._closed(self)


LOGIN_SECONDS: Final = 20.0
"""How long a connection may take to authenticate; whoever types a passphrase has time for it."""

STRANGERS: Final = 40
"""Connections that have not authenticated; of more, the oldest is dropped."""

CONNECTIONS: Final = 100
"""Connections that have."""

ATTEMPTS: Final = 12
"""Keys that a connection may offer."""

SESSIONS_EACH: Final = 10
"""Sessions that one connection may have at a time."""

_KEEPALIVE_SECONDS: Final = 15
_KEEPALIVE_COUNT: Final = 3
_WINDOW: Final = 128 * 1024
"""Bytes that a client may send before they have been taken."""


class GuestConnection(asyncssh.SSHServer):
    """One connection, and the key that has been verified on it."""

    def __init__(
        self,
        context: SessionContext,
        strangers: dict[GuestConnection, None],
        guests: set[GuestConnection],
    ) -> None:
        """`strangers` have not authenticated, the oldest first; `guests` have."""
        self._context, self._strangers, self._guests = context, strangers, guests
        self._connection: asyncssh.SSHServerConnection
        self._attempts = 0
        self._key: OfferedKey | None = None
        """The key whose signature has been verified."""
        self._offered: OfferedKey | None = None
        """The key of the request that is being looked at, once it may be tried."""
        self._claimed = ""
        """The user name that the client says: a wish of somebody unknown, and nothing else."""
        self._sessions: set[SshSession] = set()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._strangers[self] = None
        if len(self._strangers) > STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
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
        self._strangers.pop(self, None)
        self._guests.discard(self)

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
        offered, context = OfferedKey(line, key.get_fingerprint()), self._context
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
        self._strangers.pop(self, None)
        if len(self._guests) >= CONNECTIONS:
            self.abort()
        else:
            self._guests.add(self)

    # What it wants: a session. All else stays refused, as the base class has it.

    def session_requested(self) -> tuple[asyncssh.SSHServerChannel[bytes], SshSession] | bool:
        if self._key is None or len(self._sessions) >= SESSIONS_EACH:
            return False
        discard = self._sessions.discard
        session = SshSession(self._context, self._key, self._claimed, discard)
        self._sessions.add(session)
        channel = self._connection.create_server_channel(None, "strict", _WINDOW)
        session.accept_environment_of(channel)
        return channel, session


async def listen(context: SessionContext, options: HostOptions) -> HostListener:
    """Listen for guests; raise OSError if the port is taken, or there is no such interface."""
    host_key = _host_key(context.guests.parent)
    acceptor = await asyncssh.create_server(
        partial(GuestConnection, context, {}, set()),
        options.bind,
        options.port,
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
    return HostListener(acceptor.get_port(), acceptor.close, host_key.get_fingerprint())


def _host_key(data: Path) -> asyncssh.SSHKey:
    """Return the host key, made the first time.

    Raises:
        AntiphonError: storage_failed if others can read it, or it is none.
    """
    path = data / KEY_FILE
    if not path.exists():
        made = asyncssh.generate_private_key("ssh-ed25519")
        write_private(path, made.export_private_key().decode("ascii"))
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise storage_failed(
            f"Others may read the host key {path}: take a new one (delete the file), and tell your"
            " guests its fingerprint.",
        )
    try:
        return asyncssh.read_private_key(path)
    except (OSError, asyncssh.KeyImportError) as error:
        raise storage_failed(f"The host key {path} cannot be read: {error}.") from error
