"""A process that has imported the app and does nothing but fork itself for each session.

It has one thread and no event loop, so that forking it is safe; what it has imported is shared by
all sessions.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

from pydantic import ValidationError

from antiphon.guest import landlock, socket_filter
from antiphon.guest.session import preload, run_session
from antiphon.ssh.guest_processes import GuestRequest, KillRequest, ProcessState

_FILES: Final = 3
"""The most files that come with a request: input, output, errors."""

_PIECE: Final = 65_536


def serve(control: int) -> None:
    """Fork until the other end of `control` is closed, then end everything that was forked."""
    server = _ForkServer(socket.socket(fileno=control))
    preload()
    if not landlock.system_version():
        sys.stderr.write("This system has no Landlock: only Python confines sessions.\n")
    if not socket_filter.is_available():
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
        with suppress(ValidationError):
            pid = KillRequest.model_validate_json(line).kill
            if pid in self._children:
                os.kill(pid, signal.SIGKILL)
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
