"""Processes of guests, forked by a process that has imported the app once.

Requests to this fork server and its answers are lines of JSON; the number of a process alone asks
for its end.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, ConfigDict

from antiphon_kernel.client.address import KernelAddress

_LINE: Final = 65_536

Ended = Callable[[int], None]
"""Takes the exit code of a process, or the number of a signal below 0."""


class GuestRequest(BaseModel):
    """A process for a guest. The files that become its standard streams come along with it."""

    model_config = ConfigDict(frozen=True)

    address: KernelAddress
    """The kernel, with the token of this session."""
    project: str
    """Name of the project, as the header shows it."""
    folder: str
    """Folder of this guest: state of the app, and nothing else of this machine."""
    environment: dict[str, str]
    has_terminal: bool
    command: tuple[str, ...] | None = None
    """A command of antiphon with its arguments; None: the app."""


class ProcessState(BaseModel):
    """State of a process, as the fork server reports it."""

    model_config = ConfigDict(frozen=True)

    pid: int
    """Number of the process; 0 if there could be none."""
    ended: int | None = None
    """How it has ended: the exit code, or the number of a signal below 0; None: it has begun."""


class GuestProcesses:
    """The fork server, started with the first process and again if it has died."""

    def __init__(self, log: int) -> None:
        """`log` is an open file that takes what processes print when they fail."""
        self._log = log
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._reading: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[int] | None = None
        self._ended: dict[int, Ended] = {}
        self._early: dict[int, int] = {}
        self._starting = asyncio.Lock()

    async def prepare(self) -> None:
        """Start the fork server, which takes a moment to import the app."""
        if self._control is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        with theirs:
            self._server = await asyncio.to_thread(
                subprocess.Popen,
                [sys.executable, "-P", "-m", "antiphon.guest", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                pass_fds=(theirs.fileno(),),
                env=dict(os.environ) | {"LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        self._control = ours
        self._reading = asyncio.create_task(self._read(ours), name="fork server")

    async def start(self, request: GuestRequest, files: list[int], ended: Ended) -> int:
        """Start a process; its number.

        Args:
            files: its standard streams, one terminal or three pipes; the caller closes them.
            ended: called when it has ended.

        Raises:
            OSError: if there can be no further process.
        """
        async with self._starting:
            await self.prepare()
            loop, control = asyncio.get_running_loop(), self._control
            assert control is not None
            self._begun = loop.create_future()
            line = request.model_dump_json().encode() + b"\n"
            ready = asyncio.Event()
            loop.add_writer(control, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_writer(control)
            sent = socket.send_fds(control, [line], files)  # the first piece takes them along
            await loop.sock_sendall(control, line[sent:])
            pid = await self._begun
        if not pid:
            raise OSError("no process could be started for this session")
        if pid in self._early:
            loop.call_soon(ended, self._early.pop(pid))
        else:
            self._ended[pid] = ended
        return pid

    async def kill(self, pid: int) -> None:
        if pid in self._ended and self._control is not None:
            await asyncio.get_running_loop().sock_sendall(self._control, f"{pid}\n".encode())

    async def close(self) -> None:
        """End the fork server, and with it whatever it has forked."""
        if self._reading is not None:
            self._reading.cancel()
        self._gone()
        if self._server is not None:
            await asyncio.to_thread(self._server.wait)

    async def _read(self, control: socket.socket) -> None:
        waiting = bytearray()
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(control, _LINE):
                *lines, rest = (bytes(waiting) + data).split(b"\n")
                waiting[:] = rest
                for line in lines:
                    self._said(ProcessState.model_validate_json(line))
        except OSError:
            pass
        self._gone()

    def _said(self, state: ProcessState) -> None:
        if state.ended is None:
            if self._begun is not None and not self._begun.done():
                self._begun.set_result(state.pid)
        elif (ended := self._ended.pop(state.pid, None)) is not None:
            ended(state.ended)
        else:
            self._early[state.pid] = state.ended

    def _gone(self) -> None:
        """Everything that it has forked ends with it."""
        if self._control is not None:
            self._control.close()
        self._control = None
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(0)
        for ended in list(self._ended.values()):
            ended(-1)
        self._ended.clear()
        self._early.clear()
