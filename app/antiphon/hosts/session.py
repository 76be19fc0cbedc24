"""A session of a guest: a process on a terminal or on pipes, and a connection that it talks to."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import struct
import termios
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Protocol

from antiphon.hosts.guest_processes import GuestProcesses, GuestRequest
from antiphon.hosts.kernel_link import KernelLink, OpenedSession
from antiphon_kernel.types.errors import AntiphonError, permission_denied

END_SECONDS: Final = 5.0
"""How long a process has to end when its terminal is gone."""

SESSIONS: Final = 64
"""Sessions at a time."""

TERMINAL: Final = "xterm-256color"
"""Type of a terminal that gives none that can be one."""

WRITE_BYTES: Final = 64 * 1024
"""Bytes that wait for a client before its process is read no further."""

_COLUMNS: Final = range(2, 1_001)
_ROWS: Final = range(2, 501)
_COLOURS: Final = ("truecolor", "24bit")

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


class Channel(Protocol):
    """Connection of a session to its client, with what asyncssh's channels have."""

    def write(self, data: bytes, datatype: int | None = None) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def exit(self, status: int) -> None: ...


class _ProcessPipe(asyncio.Protocol):
    """Passes on what comes out of a process, or takes no more than there is room for in it."""

    def __init__(
        self,
        session: GuestSession,
        kind: int | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended` is called once, when nothing more will come."""
        self._session = session
        self._kind = kind
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._session.send(data, self._kind)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()

    def pause_writing(self) -> None:
        self._session.channel.pause_reading()

    def resume_writing(self) -> None:
        self._session.channel.resume_reading()


class GuestSession(ABC):
    """Begins with the client's wishes, goes on with a process, and ends with either side.

    Its methods have the names that asyncssh calls.
    """

    channel: Channel

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self.terminal: str | None = None
        """Type of the terminal; None: it has pipes."""
        self.environment: Mapping[bytes, bytes] = {}
        """Variables, as the client says."""
        self.is_lost = False
        """Whether nobody reads any more what is written."""
        self._size = (80, 24)
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
        self._process: BaseProcess | None = None
        self._reason: str | None = None
        self._is_waiting = True
        """The kernel has opened nothing yet, so that nothing is left open by a cancellation."""

    def arguments(self) -> tuple[str, ...] | None:
        """Return the command that the client wants, None for the app; raise AntiphonError."""
        return None

    @abstractmethod
    async def admit(self) -> OpenedSession:
        """Open the session as soon as it may be; raise AntiphonError if it never may."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Say a sentence to the guest, if they can be reached."""

    def send(self, data: bytes, kind: int | None = None) -> None:
        with suppress(OSError):  # the channel has been closed
            self.channel.write(data, kind)

    # What comes from the client

    def session_started(self) -> None:
        self._running = asyncio.create_task(self._run(), name="session of a guest")

    def terminal_size_changed(
        self, width: int, height: int, pixwidth: int = 0, pixheight: int = 0
    ) -> None:
        """Give the terminal the size that the client says, as far as a terminal can have it."""
        self._size = (
            min(max(width or 80, _COLUMNS[0]), _COLUMNS[-1]),
            min(max(height or 24, _ROWS[0]), _ROWS[-1]),
        )
        self._set_size()

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        if self._writer is not None:
            if not self._writer.is_closing():  # else nobody reads it any more
                self._writer.write(data)
        elif sum(map(len, self._early)) < WRITE_BYTES:
            self._early.append(data)

    def eof_received(self) -> bool:
        self._input_ended = True
        if self._writer is not None and self.terminal is None:
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
        self.is_lost = True
        self._hang_up()
        if self._running is not None and self._is_waiting:
            self._running.cancel()

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
        if self._process is not None and not self._ended.done():
            asyncio.get_running_loop().call_later(END_SECONDS, self._process.kill)

    # The session

    async def open(self, **shown: str) -> OpenedSession:
        """Open the session at the kernel, for what the guest has shown."""
        if len(self.context.open) >= SESSIONS:
            raise permission_denied("Too many sessions are open: come back later.")
        self._is_waiting = False
        return await self.context.link.open(**shown)

    async def _run(self) -> None:
        opened: OpenedSession | None = None
        code = 1
        try:
            arguments = self.arguments()
            opened = await self.admit()
            self.context.open[opened.session] = self
            if not self.is_lost:
                await self._start(opened, arguments)
                code = await self._ended
                if code >= 0 and self._reason is None:
                    await self._drained.wait()
        except OSError as error:
            self.say(str(error))
        except AntiphonError as error:
            self.say(error.message)
        finally:
            self._hang_up()
            if opened is not None:
                self.context.open.pop(opened.session, None)
                await self.context.link.end(opened.session)
            self._finish(code)

    async def _start(self, opened: OpenedSession, arguments: tuple[str, ...] | None) -> None:
        guest = GuestRequest(
            address=opened.address,
            project=self.context.link.project,
            folder=self.context.guests / opened.username,
            environment=self._variables(opened.username),
            has_terminal=self.terminal is not None,
            command=arguments,
        )
        theirs, ours = list[int](), list[int]()
        try:
            if self.terminal is not None:
                pairs = [os.openpty()]
            else:
                pairs = [os.pipe()[::-1], os.pipe(), os.pipe()]
            ours += (mine for mine, _ in pairs)
            theirs += (other for _, other in pairs)
            if self.terminal is not None:
                _set_size(ours[0], self._size)
            start = self.context.processes.start
            self._process = await start(guest, theirs, self._process_ended)
        except OSError as error:
            _close_all(ours)
            raise permission_denied(f"The session cannot begin: {error}.") from error
        finally:
            _close_all(theirs)
        await self._connect(ours)
        if self.is_lost or self._reason is not None:
            self._hang_up()

    async def _connect(self, files: list[int]) -> None:
        if self.terminal is not None:
            files = [os.dup(files[0]), files[0]]
        loop = asyncio.get_running_loop()
        self._open_outputs = len(files) - 1
        for number, file in enumerate(files[1:]):
            output = partial(_ProcessPipe, self, number or None, self._output_ended)
            reader, _ = await loop.connect_read_pipe(output, os.fdopen(file, "rb", 0))
            self._readers.append(reader)
        source = partial(_ProcessPipe, self)
        writer, _ = await loop.connect_write_pipe(source, os.fdopen(files[0], "wb", 0))
        self._writer = writer
        for data in self._early:
            writer.write(data)
        self._early.clear()
        if self._input_ended and self.terminal is None:
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
        folder = self.context.guests / username
        colours = self.environment.get(b"COLORTERM", b"").decode("ascii", "replace")
        places = ("config", "state", "cache", "data")
        variables = {
            **{f"XDG_{name.upper()}_HOME": str(folder / name) for name in places},
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LC_ALL": "C.UTF-8",
            "USER": username,
            "SSH_CONNECTION": "1",
        }
        if self.terminal is not None:
            variables["TERM"] = self.terminal
        if colours in _COLOURS:
            variables["COLORTERM"] = colours
        if "TZ" in os.environ:
            variables["TZ"] = os.environ["TZ"]
        return variables

    def _set_size(self) -> None:
        writer = self._writer
        if self.terminal is not None and writer is not None and not writer.is_closing():
            _set_size(writer.get_extra_info("pipe").fileno(), self._size)

    def _finish(self, code: int) -> None:
        if self.is_lost:
            return
        is_torn = self._process is not None and (code < 0 or self._reason is not None)
        if self.terminal is not None and is_torn:
            self.send(_RESTORE.encode())
        if self._reason is not None:
            self.say(self._reason)
        elif is_torn:
            self.say("The session has been ended by a failure; what was written is kept.")
        with suppress(OSError):
            self.channel.exit(code if 0 <= code < 256 and self._reason is None else 1)


def _set_size(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))


def _close_all(files: list[int]) -> None:
    """Close files that may be closed already."""
    for file in files:
        with suppress(OSError):
            os.close(file)
