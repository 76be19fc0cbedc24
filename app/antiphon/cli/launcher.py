"""Running kernels and hosts, started if need be, as processes that outlive their terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from antiphon.hosts import host_address
from antiphon.hosts.host_address import HostAddress, HostKind, HostOptions, running_host
from antiphon.locations import chosen_data, project_of_data, project_root
from antiphon_kernel.client.address import KernelAddress, lock_holder
from antiphon_kernel.client.discovery import kernel_at
from antiphon_kernel.client.trust import found
from antiphon_kernel.types.constants import LOG_FILE, ExitCode
from antiphon_kernel.types.errors import AntiphonError, no_kernel

START_SECONDS: Final = 20.0
HOST_END_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.01
SHOWN_LOG_LINES: Final = 5

_HOST_VARIABLES: Final = ("HOME", "LANG", "LOGNAME", "PATH", "TZ", "USER", "VIRTUAL_ENV")
_HOST_BEGINNINGS: Final = ("LC_", "PYTHON", "XDG_")
"""Variables that a host gets. All others are none of its business, keys of models first; in the
folder of TMPDIR paths of sockets may be too long."""


class KernelLauncher:
    """Starts the kernel of one data folder, and starts it again once if it dies."""

    def __init__(self, data: Path, project: Path, arguments: Sequence[str] = ()) -> None:
        self.data = data
        self._project = project
        self._arguments = tuple(arguments)
        self._is_throw_away = "--exit-with-last-client" in self._arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._restarted = False
        self._found: KernelAddress | None = None
        self._deadline = 0.0

    def start(self) -> bool:
        """Start the kernel unless one answers; whether that was necessary. Does not wait.

        Raises:
            AntiphonError: no_kernel if no process can be started; untrusted_folder.
        """
        self._found = kernel_at(self.data)
        if self._found is not None:
            return False
        self._deadline = time.monotonic() + START_SECONDS
        try:
            warning = found(self.data)
            if warning is not None:
                click.echo(f"antiphon: {warning}", err=True)
            # Without -P a module in the folder of the project would take the place of one of ours.
            command = [sys.executable, "-P", "-m", "antiphon_kernel", "serve"]
            command += ["--data", str(self.data)]
            command += ["--project", str(self._project), *self._arguments]
            # A throw-away kernel ends when this process has ended, and so the pipe.
            stdin = subprocess.PIPE if self._is_throw_away else subprocess.DEVNULL
            self._process = _spawn(command, self.data / LOG_FILE, cwd=self._project, stdin=stdin)
        except OSError as error:
            raise no_kernel(
                f"The kernel cannot be started on {self.data}: {error.strerror}."
                " Choose another folder with --data.",
            ) from error
        return True

    def wait(self) -> KernelAddress:
        """The kernel of the data folder, as soon as it answers.

        Raises:
            AntiphonError: no_kernel, with the last lines of its log.
        """
        while (address := self.look()) is None:
            time.sleep(POLL_SECONDS)
        return address

    def look(self) -> KernelAddress | None:
        """Return the kernel that has answered since `start`; None if it does not answer yet.

        Raises:
            AntiphonError: no_kernel, with the last lines of its log.
        """
        if self._found is not None:
            return self._found
        address = kernel_at(self.data)
        if address is not None:
            process = self._process
            if process is not None and process.pid != address.pid:
                # Another kernel was quicker: ours must not come up later, when that one has ended.
                process.terminate()
                process.wait(START_SECONDS)
                self._process = None
            self._found = address
            return address
        ended = self._process.poll() if self._process is not None else None
        # Another one was quicker to take the folder: it will answer in a moment.
        if ended is not None and ended != ExitCode.FOLDER_IN_USE:
            raise self._failure(f"ended at once with exit code {ended}")
        if time.monotonic() >= self._deadline:
            raise self._failure(f"does not answer after {START_SECONDS:.0f} s")
        return None

    def restart(self) -> None:
        """Start the kernel again after it died; blocks until it answers.

        Raises:
            AntiphonError: no_kernel if it does not come up, or was restarted before.
        """
        if kernel_at(self.data) is not None:
            return
        if self._restarted:
            raise no_kernel(
                f"The kernel ended a second time and is not started again; see "
                f"{self.data / LOG_FILE}.",
            )
        self._restarted = True
        self.start()
        self.wait()

    def _failure(self, what: str) -> AntiphonError:
        log = self.data / LOG_FILE
        tail = _end_of(log, SHOWN_LOG_LINES) or "(its log is empty)"
        return no_kernel(f"The kernel {what}. The end of its log, {log}:\n{tail}")


def _spawn(
    command: Sequence[str],
    log_path: Path,
    *,
    cwd: Path,
    stdin: int = subprocess.DEVNULL,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    log_file = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(log_file, "ab") as log:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )


def _end_of(log: Path, count: int) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        return "".join(deque(lines, maxlen=count)).strip()


def start_host(data: Path, options: HostOptions) -> HostAddress:
    """Return the host of a data folder, started with these options if none of its kind runs.

    Raises:
        AntiphonError: no_kernel if it does not come up, with the end of its log.
    """
    if (running := running_host(data, options.kind)) is not None:
        return running
    command = [sys.executable, "-P", "-m", "antiphon.hosts", str(data)]
    command.append(options.model_dump_json())
    env = {
        name: value
        for name, value in os.environ.items()
        if name in _HOST_VARIABLES or name.startswith(_HOST_BEGINNINGS)
    } | {"LC_ALL": "C.UTF-8"}
    log = data / host_address.LOG_FILE.format(options.kind)
    process = _spawn(command, log, cwd=data, env=env)
    deadline = time.monotonic() + START_SECONDS
    while (running := running_host(data, options.kind)) is None:
        if process.poll() is not None or time.monotonic() >= deadline:
            what = f"The host does not start. The end of {log}:\n{_end_of(log, 3)}"
            raise no_kernel(what)
        time.sleep(POLL_SECONDS)
    return running


def stop_host(data: Path, kind: HostKind) -> bool:
    """End a host of a data folder with all its sessions; whether one ran."""
    lock = host_address.LOCK_FILE.format(kind)
    pid = lock_holder(data, lock)
    if pid is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + HOST_END_SECONDS
    while lock_holder(data, lock) == pid and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return True


def program() -> str:
    """Return the name that a shell in this folder calls this program by, as it was called now."""
    called = Path(sys.argv[0])
    if called.name != "antiphon" or shutil.which("antiphon") == str(called.absolute()):
        return "antiphon"
    return shlex.quote(sys.argv[0])


def ensure_kernel(data: Path | None) -> Path:
    """The data folder of a kernel that runs, started now if need be, which is said on stderr.

    Raises:
        AntiphonError: no_kernel, untrusted_folder.
    """
    folder = chosen_data(data, project_root(Path.cwd()))
    project = project_of_data(folder)
    starter = KernelLauncher(folder, project)
    if starter.start():
        starter.wait()
        click.echo(f"antiphon: started a kernel for {project}", err=True)
    return starter.data
