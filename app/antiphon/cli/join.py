"""Kernels that are joined: their addresses, tokens that no process list may show, names of guests.

`antiphon join ssh://…` has the app here and the kernel over there, through plain OpenSSH. One ssh
process holds the connection, as the master of a control socket. Over it the kernel's socket is
asked for and forwarded, so that whoever may log in there is the kernel's user there, as on the
machine itself. Keystrokes stay local.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, repeat
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import click

from antiphon.cli.errors import CommandError
from antiphon.locations import state_folder
from antiphon_kernel.client.address import KernelAddress, take_lock
from antiphon_kernel.client.ownership import write_private
from antiphon_kernel.types.constants import TOKEN_VARIABLE, ExitCode

FROM_INPUT: Final = "-"
"""Instead of an address: read it from standard input."""

_LONGEST_LINE: Final = 10_000

_SCHEMES: Final = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


def parse_kernel_url(url: str) -> tuple[KernelAddress, str | None]:
    """The kernel that `url` leads to, and the context if it names one.

    Takes what `antiphon invite` prints, and `sync` or `http` of `antiphon serve --json`, with
    `?token=...`, and with `/` and a context after `sync` if it is not to be the default one.

    Raises:
        CommandError: if it cannot be the address of a kernel.
    """
    try:
        parts = urlsplit(url)
        scheme = _SCHEMES.get(parts.scheme)
        fit = scheme is not None and parts.hostname and (parts.port or 1) > 0
    except ValueError:
        parts, scheme, fit = urlsplit(""), None, False
    if not fit:
        raise CommandError(
            f"{url!r} is not the address of a kernel: expected"
            " ws://HOST:PORT/sync?token=..., as `antiphon invite` prints it.",
            ExitCode.USAGE,
        )
    base, mark, context = parts.path.partition("/sync")
    if not mark:
        base = parts.path.rstrip("/")
    http = f"{scheme}://{parts.netloc}{base}"
    tokens = parse_qs(parts.query).get("token", [])
    address = KernelAddress(
        pid=0,
        kernel="",
        sync=f"{http.replace('http', 'ws', 1)}/sync",
        http=http,
        token=tokens[0] if tokens else None,
    )
    return address, context.strip("/") or None


def _hide_token(url: str) -> None:
    """Begin this process again with a token in its environment, where `ps` does not show it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    query, arguments = parse_qsl(parts.query, keep_blank_values=True), sys.argv[1:]
    tokens = [value for name, value in query if name == "token"]
    if not tokens or not any(one.endswith(url) for one in arguments):
        return
    kept = urlencode([pair for pair in query if pair[0] != "token"])
    bare = urlunsplit(parts._replace(query=kept))
    command = [one.replace(url, bare) for one in arguments]
    line = [sys.executable, "-P", "-m", "antiphon", *command]
    sys.stdout.flush()
    os.execve(sys.executable, line, os.environ | {TOKEN_VARIABLE: tokens[-1]})


def with_token(url: str) -> tuple[KernelAddress, str | None]:
    """The kernel to join and, if the address names one, the context.

    A token that is not in the address is taken from the environment, else asked for; one on the
    command line is hidden. The kernel will know this program again by a secret that is kept.

    Raises:
        CommandError: if that is no address.
    """
    _hide_token(url)
    address, context = parse_kernel_url(url)
    hidden = os.environ.pop(TOKEN_VARIABLE, None)
    token = address.token or hidden
    if token is None and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    if token is None:
        return address, context
    token = token.strip()  # a file or a variable often ends with a newline
    if not token.isprintable():
        raise CommandError("the token has control characters: copy it anew.", ExitCode.USAGE)
    known_by = _client_secret(state_folder() / "joined", token)
    return address.model_copy(update={"token": token, "client": known_by}), context


def _client_secret(folder: Path, token: str) -> str:
    """Return the secret that identifies this user's programs to a kernel they join with `token`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / hashlib.sha256(token.encode()).hexdigest()[:32]
    fresh = path.with_suffix(f".{os.getpid()}")
    write_private(fresh, secrets.token_urlsafe(32))
    with suppress(FileExistsError):
        # The first one stays: two that join at once are one client.
        path.hardlink_to(fresh)
    fresh.unlink()
    return path.read_text("ascii").strip()


def read_invitation() -> str:
    """One line from standard input, which is the terminal again afterwards."""
    if sys.stdin.isatty():
        return str(click.prompt("Invitation", hide_input=True, err=True)).strip().split()[-1]
    line = sys.stdin.readline(_LONGEST_LINE).split()
    if not line:
        raise CommandError(
            "standard input is empty: give it the line that `antiphon invite` printed.",
            ExitCode.USAGE,
        )
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise CommandError(
            "the app needs a terminal, and there is none besides standard input.", ExitCode.USAGE
        ) from error
    os.dup2(terminal, 0)
    os.close(terminal)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    # The whole line may have been pasted: antiphon join ws://...
    return line[-1]


def pick_guest_name(data: Path) -> str:
    """The first free one of guest, guest2, guest3, ...; free again when this process ends."""
    names = (f"guest{number if number > 1 else ''}" for number in count(1))
    # Stays open on purpose: the lock is the name, and the operating system gives it back.
    return next(one for one in names if take_lock(data / f"{one}.lock", seconds=0) is not None)


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
        self._errors = self._folder / "errors"
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
            with self._errors.open("wb") as errors:
                self._master = subprocess.Popen(
                    [*command, *self._target.arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=quietly,
                )
        except OSError as error:
            raise CommandError(f"ssh cannot be run: {error.strerror}.") from error
        while not self._control.exists():
            if self._master.poll() is not None:
                said = self._errors.read_bytes().decode("utf-8", "replace")
                words = said.strip().replace("\r\n", "; ")
                raise CommandError(
                    f"ssh does not connect to {self._target.host}: {words or 'it says nothing'}",
                    ExitCode.NO_KERNEL,
                )
            time.sleep(_POLL_SECONDS)

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
            for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                if self._closing.wait(pause):
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
