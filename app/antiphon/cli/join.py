"""`antiphon join`: an address, a token that no process list may show, and the name of a guest."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import click

from antiphon.cli.errors import CommandError
from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.types.constants import ExitCode

TOKEN_VARIABLE: Final = "ANTIPHON_TOKEN"
"""In the environment: the token, where the address has none."""

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
        without_token = re.sub(r"(?<=token=)[^&#]+", "...", url)
        raise CommandError(
            f"{without_token!r} is not the address of a kernel: expected"
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


def split_token(url: str) -> tuple[str, str | None]:
    """The address without its token, and the token."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None
    query = parse_qsl(parts.query, keep_blank_values=True)
    tokens = [value for name, value in query if name == "token"]
    kept = urlencode([pair for pair in query if pair[0] != "token"])
    return urlunsplit(parts._replace(query=kept)), tokens[-1] if tokens else None


def hide_token_from_argv(arguments: Sequence[str], url: str) -> None:
    """Begin this process again with a token in its environment, where `ps` does not show it."""
    bare, token = split_token(url)
    if token is None or not any(one.endswith(url) for one in arguments):
        return
    command = [one.replace(url, bare) for one in arguments]
    line = [sys.executable, "-P", "-m", "antiphon", *command]
    sys.stdout.flush()
    os.execve(sys.executable, line, os.environ | {TOKEN_VARIABLE: token})


def read_invitation(url: str, state: Path) -> tuple[KernelAddress, str | None]:
    """The kernel to join and, if the address names one, the context.

    A token that is not in the address is taken from the environment, else asked for. The kernel
    will know this program again by a secret that is kept in `state`.

    Raises:
        CommandError: if that is no address.
    """
    return with_token(_read_line() if url == FROM_INPUT else url, state)


def with_token(url: str, state: Path) -> tuple[KernelAddress, str | None]:
    """As `read_invitation`, of an address that standard input has no part in."""
    address, context = parse_kernel_url(url)
    hidden = os.environ.pop(TOKEN_VARIABLE, None)
    token = address.token or hidden
    if token is None and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    if token is None:
        return address, context
    known_by = client_secret(state / "joined", token)
    return address.model_copy(update={"token": token, "client": known_by}), context


def client_secret(folder: Path, token: str) -> str:
    """Return the secret that identifies this user's programs to a kernel they join with `token`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / hashlib.sha256(token.encode()).hexdigest()[:32]
    fresh = path.with_suffix(f".{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32))
    try:
        # The first one stays: two that join at once are one client.
        path.hardlink_to(fresh)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text("ascii").strip()


def _read_line() -> str:
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
    for number in count(1):
        name = "guest" if number == 1 else f"guest{number}"
        # Stays open on purpose: the lock is the name, and the operating system gives it back.
        lock = os.open(data / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return name
    raise AssertionError("there is always a next number")
