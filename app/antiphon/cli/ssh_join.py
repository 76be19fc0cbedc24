"""`antiphon join ssh://…`: the app here, the kernel over there, through plain OpenSSH.

One ssh process holds the connection, as the master of a control socket. Over it the kernel's socket
is asked for and forwarded, so that whoever may log in there is the kernel's user there, as on the
machine itself. Keystrokes stay local.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from antiphon.cli.errors import CommandError
from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.types.constants import ExitCode

_OPTIONS: Final = (
    "-T",
    "-a",
    "-x",
    "-oControlPersist=no",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    "-oStreamLocalBindUnlink=yes",
    "-oExitOnForwardFailure=yes",
)
_POLL_SECONDS: Final = 0.02
_COMMAND_SECONDS: Final = 60.0
_PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before each further attempt to connect again; the last one for all that follow."""

_LONGEST_FOLDER: Final = 60
"""Characters of a folder for sockets, whose paths may have about a hundred."""


@dataclass(frozen=True, slots=True)
class SshTarget:
    """A project on a machine that can be reached over SSH."""

    host: str
    user: str | None
    port: int | None
    path: str | None
    """Folder of the project over there; None: of the newest kernel."""

    @property
    def arguments(self) -> list[str]:
        """Return the end of an ssh command line."""
        port = ["-p", str(self.port)] if self.port is not None else []
        return [*port, "--", f"{self.user}@{self.host}" if self.user else self.host]

    @property
    def command(self) -> str:
        """Return what a shell over there runs to say where the kernel is."""
        if self.path is None:
            return "antiphon join --address"
        in_home, _, rest = self.path.partition("~/")
        folder = f"~/{shlex.quote(rest)}" if not in_home.strip("/") and rest else None
        return f"cd {folder or shlex.quote(self.path)} && antiphon join --address"


def parse_ssh_url(url: str) -> SshTarget:
    """Read `ssh://[USER@]HOST[:PORT][/PATH]`, `/~/PATH` for one in the home over there.

    Raises:
        CommandError: if it is something else.
    """
    try:
        parts = urlsplit(url)
        host, user, port = parts.hostname or "", parts.username, parts.port
    except ValueError:
        parts, host, user, port = urlsplit(""), "", None, None
    # What begins with a dash would be an option of ssh.
    if not host or host.startswith("-") or (user or "").startswith("-") or parts.query:
        raise CommandError(
            f"{url!r} is no address: expected ssh://[USER@]HOST[:PORT][/FOLDER].", ExitCode.USAGE
        )
    path = unquote(parts.path)
    return SshTarget(host, user and unquote(user), port, path if path.strip("/") else None)


class SshTunnel:
    """The kernel's socket on this machine, as long as the tunnel is open; it mends itself."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target
        base = tempfile.gettempdir()
        short = base if len(base) <= _LONGEST_FOLDER else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="antiphon-ssh-", dir=short))
        self._control = self._folder / "control"
        self._socket = self._folder / "kernel.sock"
        self._master: subprocess.Popen[bytes] | None = None
        self._said = bytearray()
        self._closing = threading.Event()
        self._keeper: threading.Thread | None = None

    def open(self) -> KernelAddress:
        """Connect, asking for what ssh asks for; the kernel over there is started if none runs.

        Raises:
            CommandError: with what ssh, or antiphon over there, says.
        """
        try:
            kernel = self._connect()
        except BaseException:
            self.close()
            raise
        self._keeper = threading.Thread(target=self._keep, name="ssh tunnel", daemon=True)
        self._keeper.start()
        host = self._target.host
        return KernelAddress(
            pid=0,
            kernel=kernel,
            sync=f"ws://{host}/sync",
            http=f"http://{host}",
            socket=str(self._socket),
        )

    def close(self) -> None:
        """End ssh, and remove what it has left."""
        self._closing.set()
        self._end_master()
        if self._keeper is not None:
            self._keeper.join(_COMMAND_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self, *, quietly: bool = False) -> str:
        """Start ssh and forward the socket; return the kernel's id."""
        self._start_master(quietly)
        found = self._run_ssh(*self._target.arguments, self._target.command)
        try:
            told = json.loads(found.stdout.strip().rpartition(b"\n")[2])
            kernel, socket = str(told["kernel"]), str(told["socket"])
        except (ValueError, KeyError, TypeError) as error:
            words = found.stderr.decode("utf-8", "replace").strip().removeprefix("antiphon: ")
            raise CommandError(
                f"antiphon does not answer on {self._target.host}: {words or 'it says nothing'}."
                " Is it installed there, on the PATH of shells without a terminal?",
                ExitCode.NO_KERNEL,
            ) from error
        forward = ("-O", "forward", "-L", f"{self._socket}:{socket}")
        done = self._run_ssh(*forward, *self._target.arguments)
        if done.returncode:
            words = done.stderr.decode("utf-8", "replace").strip()
            raise CommandError(
                f"ssh to {self._target.host} does not forward the kernel's socket: {words}.",
                ExitCode.NO_KERNEL,
            )
        return kernel

    def _start_master(self, quietly: bool) -> None:
        self._socket.unlink(missing_ok=True)
        self._control.unlink(missing_ok=True)
        command = ["ssh", "-M", "-N", f"-S{self._control}", *_OPTIONS]
        command += ["-oBatchMode=yes"] if quietly else []
        try:
            # Its errors would be written over the app; what it asks, it asks on the terminal.
            self._master = subprocess.Popen(
                [*command, *self._target.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=quietly,
            )
        except OSError as error:
            raise CommandError(f"ssh cannot be run: {error.strerror}.") from error
        self._said.clear()
        listener = threading.Thread(target=self._listen, args=(self._master,), daemon=True)
        listener.start()
        while not self._control.exists():
            if self._master.poll() is not None:
                listener.join(1)
                words = self._said.decode("utf-8", "replace").strip().replace("\r\n", "; ")
                raise CommandError(
                    f"ssh does not connect to {self._target.host}: {words or 'it says nothing'}",
                    ExitCode.NO_KERNEL,
                )
            time.sleep(_POLL_SECONDS)

    def _listen(self, master: subprocess.Popen[bytes]) -> None:
        assert master.stderr is not None
        with master.stderr:
            for line in master.stderr:
                self._said += line
                del self._said[:-4_000]

    def _run_ssh(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                ["ssh", f"-S{self._control}", "-T", "-oBatchMode=yes", *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandError(
                f"{self._target.host} does not answer.", ExitCode.NO_KERNEL
            ) from error

    def _keep(self) -> None:
        """Connect again whenever ssh has ended."""
        while self._master is not None:
            self._master.wait()
            for attempt in range(1_000_000):
                if self._closing.wait(_PAUSES[min(attempt, len(_PAUSES) - 1)]):
                    return
                try:
                    self._connect(quietly=True)
                except CommandError:
                    self._end_master()
                else:
                    break

    def _end_master(self) -> None:
        master = self._master
        if master is not None:
            master.terminate()
            with suppress(subprocess.TimeoutExpired):
                master.wait(2)
