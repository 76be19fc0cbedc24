"""The SSH server: public keys only, sessions of guests, and no forwarding of any kind.

A session is a channel on one side, and a process on a terminal or pipes on the other.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import shlex
import struct
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import asyncssh

from antiphon.ssh.guest_processes import GuestProcesses, GuestRequest
from antiphon.ssh.kernel_link import KernelLink, OfferedKey, OpenedSession
from antiphon.time_format import format_relative
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.errors import AntiphonError

COMMANDS: Final = ("tail", "send", "export")
"""Commands of antiphon that a guest runs without a terminal; the kernel says what each may do."""

ASK_SECONDS: Final = 300.0
"""How long somebody unknown waits for an owner."""

END_SECONDS: Final = 5.0
"""How long a process has to end when its terminal is gone."""

SESSIONS: Final = 64
"""Sessions at a time."""

_COLUMNS: Final = range(2, 1_001)
_ROWS: Final = range(2, 501)
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_COLOURS: Final = ("truecolor", "24bit")
_TERMINAL: Final = "xterm-256color"
"""Type of a terminal that gives none that can be one."""

_WRITE_BYTES: Final = 64 * 1024
"""Bytes that wait for a client before its process is read no further."""

_RESTORE: Final = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l"
    "\x1b[?2026l\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m\r\n"
)
"""Puts a terminal in order that an app has left as it was."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SessionContext:
    """Everything that the sessions of one host share."""

    link: KernelLink
    processes: GuestProcesses
    guests: Path
    """Folder with one folder a guest."""
    ask: bool
    """Whether owners are asked about unknown keys."""
    open: dict[str, GuestSession] = field(default_factory=dict)
    """By the kernel's id of the session."""

    def dismissed(self, session: str, reason: str) -> None:
        one = self.open.get(session)
        if one is not None:
            one.dismiss(reason)


class _WantedVariables(dict[bytes, bytes]):
    """Environment of a channel: what the client sends and nobody wants is not kept."""

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if name in (b"LANG", b"COLORTERM") and len(value) <= 64:
            super().__setitem__(name, value)


class _ProcessPipe(asyncio.Protocol):
    """Passes on what comes out of a process, or takes no more than there is room for in it."""

    def __init__(
        self,
        channel: asyncssh.SSHServerChannel[bytes],
        kind: asyncssh.DataType = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended` is called once, when nothing more will come."""
        self._channel = channel
        self._kind = kind
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        with suppress(OSError):  # the channel has been closed
            self._channel.write(data, self._kind)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()

    def pause_writing(self) -> None:
        self._channel.pause_reading()

    def resume_writing(self) -> None:
        self._channel.resume_reading()


class _RefusedError(Exception):
    """The session comes to nothing; the message is for the guest."""


class GuestSession(asyncssh.SSHServerSession[bytes]):
    """Begins with the client's wishes, goes on with a process, and ends with either side."""

    def __init__(
        self,
        context: SessionContext,
        key: OfferedKey,
        claimed: str,
        closed: Callable[[GuestSession], None],
    ) -> None:
        """`claimed` is the user name that the client says; `closed` is called at the end."""
        self._context = context
        self._key = key
        self._claimed = claimed
        self._closed = closed
        self._channel: asyncssh.SSHServerChannel[bytes]
        self._terminal: str | None = None
        self._size = (80, 24)
        self._command: str | None = None
        self._environment: Mapping[bytes, bytes] = {}
        self._running: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """How the process has ended."""
        self._drained = asyncio.Event()
        self._readers: list[asyncio.ReadTransport] = []
        self._open_outputs = 0
        """Streams of the process of which more may come."""
        self._writer: asyncio.WriteTransport | None = None
        self._early: list[bytes] = []
        """Input that came before there was a process."""
        self._input_ended = False
        self._pid = 0
        self._reason: str | None = None
        self._lost = False
        self._is_waiting = True
        """The kernel has opened nothing yet, so that nothing is left open by a cancellation."""

    def accept_environment_of(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        """Let the channel keep only the variables that reach a session."""
        self._environment = channel._env = _WantedVariables()  # noqa: SLF001  unbounded otherwise

    # The client's wishes

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        chan.set_write_buffer_limits(_WRITE_BYTES)

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: Mapping[int, int]
    ) -> bool:
        self._terminal = term_type if _WORD.fullmatch(term_type) else _TERMINAL
        self._size = _fitting(term_size[0], term_size[1])
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._size = _fitting(width, height)
        if self._writer is not None:
            self._set_size()

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        return False

    def session_started(self) -> None:
        self._running = asyncio.create_task(self._run(), name="session of a guest")

    # Bytes

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._writer is not None:
            if not self._writer.is_closing():  # else nobody reads it any more
                self._writer.write(data)
        elif sum(map(len, self._early)) < _WRITE_BYTES:
            self._early.append(data)

    def eof_received(self) -> bool:
        self._input_ended = True
        if self._writer is not None and self._terminal is None:
            self._writer.write_eof()
        return True  # the process may have more to say

    def pause_writing(self) -> None:
        for reader in self._readers:
            reader.pause_reading()

    def resume_writing(self) -> None:
        for reader in self._readers:
            reader.resume_reading()

    # Its end

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._hang_up()
        if self._running is not None and self._is_waiting:
            self._running.cancel()
        self._closed(self)

    def dismiss(self, reason: str) -> None:
        self._reason = reason
        self._hang_up()

    def _hang_up(self) -> None:
        """Take the terminal or the pipes from the process, and its life if it goes on."""
        for reader in self._readers:
            reader.close()
        if self._writer is not None and not self._writer.is_closing():
            self._writer.abort()
        self._drained.set()
        if self._pid and not self._ended.done():
            loop = asyncio.get_running_loop()
            loop.call_later(END_SECONDS, self._kill, self._pid)

    def _kill(self, pid: int) -> None:
        if not self._ended.done():
            self._killing = asyncio.create_task(self._context.processes.kill(pid))

    # The session

    async def _run(self) -> None:
        opened: OpenedSession | None = None
        code = 1
        try:
            arguments = self._arguments()
            link = self._context.link
            if self._context.ask and await link.refusal(self._key) is not None:
                waits = "is not known here. Waiting for the owner to let you in …"
                self._say(f"{self._key.fingerprint} {waits}")
                if await link.ask(self._key.line, self._claimed, ASK_SECONDS) is None:
                    raise _RefusedError("You were not let in.")
            if len(self._context.open) >= SESSIONS:
                raise _RefusedError("Too many sessions are open: come back later.")
            self._is_waiting = False
            opened = await link.open(self._key)
            self._context.open[opened.session] = self
            if not self._lost:
                await self._start(opened, arguments)
                code = await self._ended
                if code >= 0 and self._reason is None:
                    await self._drained.wait()
        except (_RefusedError, OSError) as error:
            self._say(str(error))
        except AntiphonError as error:
            self._say(error.message)
        finally:
            self._hang_up()
            if opened is not None:
                self._context.open.pop(opened.session, None)
                await self._context.link.end(opened.session)
            self._finish(code)

    def _arguments(self) -> tuple[str, ...] | None:
        """Return the command that the client wants, None for the app.

        Raises:
            _RefusedError: if that is nothing for guests.
        """
        if self._command is None:
            if self._terminal is None:
                raise _RefusedError(
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
            raise _RefusedError(
                f"Only {', '.join(COMMANDS)} can be run here; without a command, the app is opened."
            )
        return tuple(words)

    async def _start(self, opened: OpenedSession, arguments: tuple[str, ...] | None) -> None:
        guest = GuestRequest(
            address=opened.address,
            project=self._context.link.project,
            folder=str(self._context.guests / opened.username),
            environment=self._variables(opened.username),
            has_terminal=self._terminal is not None,
            command=arguments,
        )
        theirs: list[int] = []
        ours: list[int] = []
        try:
            if self._terminal is not None:
                ours_and_theirs = [os.openpty()]
            else:
                ours_and_theirs = [os.pipe()[::-1], os.pipe(), os.pipe()]
            for mine, other in ours_and_theirs:
                ours.append(mine)
                theirs.append(other)
            if self._terminal is not None:
                _set_size(ours[0], self._size)
            self._pid = await self._context.processes.start(guest, theirs, self._process_ended)
        except OSError as error:
            _close_all(ours)
            raise _RefusedError(f"The session cannot begin: {error}.") from error
        finally:
            _close_all(theirs)
        await self._connect(ours)
        if self._lost or self._reason is not None:
            self._hang_up()

    async def _connect(self, files: list[int]) -> None:
        if self._terminal is not None:
            files = [os.dup(files[0]), files[0]]
        loop, kinds = asyncio.get_running_loop(), (None, asyncssh.EXTENDED_DATA_STDERR)
        self._open_outputs = len(files) - 1
        for file, kind in zip(files[1:], kinds, strict=False):
            output = partial(_ProcessPipe, self._channel, kind, self._output_ended)
            reader, _ = await loop.connect_read_pipe(output, os.fdopen(file, "rb", 0))
            self._readers.append(reader)
        source = partial(_ProcessPipe, self._channel)
        writer, _ = await loop.connect_write_pipe(source, os.fdopen(files[0], "wb", 0))
        self._writer = writer
        for data in self._early:
            writer.write(data)
        self._early.clear()
        if self._input_ended and self._terminal is None:
            writer.write_eof()
        self._set_size()

    def _output_ended(self) -> None:
        self._open_outputs -= 1
        if not self._open_outputs:
            self._drained.set()

    def _process_ended(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    def _variables(self, username: str) -> dict[str, str]:
        """Return the environment of the process: nothing of this machine's user is in it."""
        folder = self._context.guests / username
        language = self._environment.get(b"LANG", b"").decode("ascii", "replace")
        colours = self._environment.get(b"COLORTERM", b"").decode("ascii", "replace")
        variables = {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_DATA_HOME": str(folder / "data"),
            "TMPDIR": str(folder),
            "LC_ALL": "C.UTF-8",
            "USER": username,
            "SSH_CONNECTION": "1",
        }
        if self._terminal is not None:
            variables["TERM"] = self._terminal
        if _LANGUAGE.fullmatch(language):
            variables["LANG"] = language
        if colours in _COLOURS:
            variables["COLORTERM"] = colours
        if "TZ" in os.environ:
            variables["TZ"] = os.environ["TZ"]
        return variables

    def _set_size(self) -> None:
        writer = self._writer
        if self._terminal is not None and writer is not None and not writer.is_closing():
            _set_size(writer.get_extra_info("pipe").fileno(), self._size)

    def _say(self, text: str) -> None:
        """Say a sentence to the guest: on their screen, or as an error of the command."""
        if self._lost:
            return
        end = "\r\n" if self._terminal is not None else "\n"
        kind = None if self._terminal is not None else asyncssh.EXTENDED_DATA_STDERR
        with suppress(OSError):
            words = sanitize(format_relative(text))
            self._channel.write(f"antiphon: {words}{end}".encode(), kind)

    def _finish(self, code: int) -> None:
        if self._lost:
            return
        if self._terminal is not None and self._pid and (code < 0 or self._reason is not None):
            with suppress(OSError):
                self._channel.write(_RESTORE.encode())
        if self._reason is not None:
            self._say(self._reason)
        elif code < 0 and self._pid:
            self._say("The session has been ended by a failure; what was written is kept.")
        with suppress(OSError):
            self._channel.exit(code if 0 <= code < 256 and self._reason is None else 1)


def _fitting(columns: int, rows: int) -> tuple[int, int]:
    """Return a size that a terminal can have, of whatever a client says."""
    return (
        min(max(columns or 80, _COLUMNS[0]), _COLUMNS[-1]),
        min(max(rows or 24, _ROWS[0]), _ROWS[-1]),
    )


def _set_size(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))


def _close_all(files: list[int]) -> None:
    """Close files that may be closed already."""
    for file in files:
        with suppress(OSError):
            os.close(file)


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
    return await asyncssh.create_server(
        partial(GuestConnection, GuestConnections(context)),
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
