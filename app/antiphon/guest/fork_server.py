"""A process that has imported the app and does nothing but fork itself for each session.

It has one thread and no event loop, so that forking it is safe; what it has imported is shared by
all sessions.
"""

from __future__ import annotations

import fcntl
import gc
import os
import selectors
import signal
import socket
import sys
import termios
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from antiphon.guest.confinement import confine, has_socket_filter, landlock_version
from antiphon.hosts.guest_processes import GuestRequest, ProcessState

_PRELOADED: Final = (
    "antiphon.app",
    "antiphon.cli.call",
    "antiphon.cli.commands",
    "antiphon.cli.tail",
    "antiphon_kernel.client.transfers",
    "textual.command",
    "textual.drivers.linux_driver",
    "textual.layouts.factory",
    "textual.widgets.input",
    "websockets.asyncio.client",
)

_LOG: Final = 100
"""The file that the fork server's errors go to."""

_MOST_FILES: Final = 65_536


_FILES: Final = 3
"""The most files that come with a request: input, output, errors."""

_PIECE: Final = 65_536


def serve(control: int) -> None:
    """Fork until the other end of `control` is closed, then end everything that was forked."""
    server = _ForkServer(socket.socket(fileno=control))
    for name in _PRELOADED:
        import_module(name)
    if not landlock_version():
        sys.stderr.write("This system has no Landlock: only Python confines sessions.\n")
    if not has_socket_filter():
        sys.stderr.write("There is no filter of sockets for this system: only Python keeps them.\n")
    gc.collect()
    gc.freeze()
    server.run()


class _ForkServer:
    """The loop of the fork server."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: set[int] = set()
        self._waiting = bytearray()
        self._files: list[int] = []
        self._woken, self._waker = os.pipe()
        for one in (self._woken, self._waker):
            os.set_blocking(one, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            going = True
            while going:
                for key, _ in selector.select():
                    if key.fileobj == self._woken:
                        os.read(self._woken, _PIECE)
                        self._reap()
                    else:
                        going = self._receive()
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _receive(self) -> bool:
        """Take in what has come; False at the end."""
        data, files, _, _ = socket.recv_fds(self._control, _PIECE, _FILES)
        self._files += files
        if not data:
            return False
        *lines, rest = (bytes(self._waiting) + data).split(b"\n")
        self._waiting[:] = rest
        for line in lines:
            self._answer(line)
        return True

    def _answer(self, line: bytes) -> None:
        if line.isdigit():
            if int(line) in self._children:
                os.kill(int(line), signal.SIGKILL)
            return
        files, self._files = self._files, []
        try:
            pid = self._fork(GuestRequest.model_validate_json(line), files)
        except (OSError, ValidationError):
            pid = 0
        for file in files:
            os.close(file)
        self._say(ProcessState(pid=pid))

    def _fork(self, request: GuestRequest, files: list[int]) -> int:
        pid = os.fork()
        if pid:
            self._children.add(pid)
            return pid
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = run_session(request, files)
        finally:
            os._exit(code)  # nothing of the server's goes on in the session

    def _reap(self) -> None:
        for pid in tuple(self._children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._children.discard(pid)
                self._say(ProcessState(pid=pid, ended=os.waitstatus_to_exitcode(status)))

    def _say(self, state: ProcessState) -> None:
        with suppress(OSError):  # the end of the host is noticed by reading
            self._control.sendall(state.model_dump_json().encode() + b"\n")


def run_session(request: GuestRequest, files: list[int]) -> int:
    """Become the session; return the exit code."""
    _take_streams(files, request.has_terminal)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    folder = Path(request.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(folder)
    confine(folder, request.address.http)
    from antiphon_kernel.client.standard_streams import run_command

    work = _run_app if request.command is None else _run_command
    try:
        run_command(lambda: work(request))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001  the guest is told that, the owner why
        os.write(_LOG, traceback.format_exc().encode("utf-8", "replace"))
        os.write(2, b"antiphon: the session has failed.\r\n")
        return 1
    finally:
        sys.stderr.flush()
    return 0


def _take_streams(files: list[int], has_terminal: bool) -> None:
    """Make the files the standard streams, of a session of its own, and close all others."""
    os.setsid()
    os.dup2(2, _LOG)
    inputs = files * 3 if has_terminal else files
    for number, file in enumerate(inputs[:3]):
        os.dup2(file, number)
    os.closerange(3, _LOG)
    os.closerange(_LOG + 1, _MOST_FILES)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _run_app(request: GuestRequest) -> None:
    from antiphon.app import AntiphonApp
    from antiphon.cli.opening import require_terminal
    from antiphon.options import AppOptions

    require_terminal()
    options = AppOptions(
        data=Path(request.folder),
        address=request.address,
        project=Path(request.folder) / "files",
        is_guest=True,
    )
    app = AntiphonApp(options, place=request.project)
    app.run()
    sys.exit(app.return_code or 0)


def _run_command(request: GuestRequest) -> None:
    from antiphon.cli.commands import antiphon
    from antiphon.cli.kernel_option import KernelTarget

    assert request.command is not None
    target = KernelTarget(lambda: lambda: request.address)
    antiphon(list(request.command), prog_name="antiphon", obj=target)
