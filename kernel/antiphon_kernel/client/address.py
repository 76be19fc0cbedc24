"""Address of a kernel, as it writes it beside its data."""

from __future__ import annotations

import fcntl
import ipaddress
import os
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.client.ownership import LOCK_FILE, write_private
from antiphon_kernel.client.trust import is_trusted
from antiphon_kernel.types.errors import AntiphonError, no_kernel

ADDRESS_FILE: Final = "kernel.json"

LOCK_SECONDS: Final = 0.1
"""A client that looks whether a lock is held has it for some microseconds."""


class KernelAddress(BaseModel):
    """One running kernel: its process, its addresses, and the owner's token."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    kernel: str
    sync: str
    """`ws://HOST:PORT/sync`; with `/` and a context's id or label it is a room."""
    http: str
    """`http://HOST:PORT`"""
    socket: str | None = None
    """Path of the unix socket, for clients of the same user on the same machine."""
    token: str | None = None
    client: str | None = None
    """A secret of this program's own, by which the kernel knows it when it comes again with the
    token of an invitation."""
    data: str | None = None
    """The folder where the kernel keeps its files."""

    @property
    def reachable_socket(self) -> Path | None:
        """The unix socket if there is one on this machine."""
        if self.socket is None:
            return None
        path = Path(self.socket)
        return path if path.is_socket() else None

    @property
    def headers(self) -> dict[str, str]:
        """The headers by which the kernel knows who connects; over the unix socket it sees that."""
        headers = {}
        if self.reachable_socket is None and self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.client is not None:
            headers["Antiphon-Client"] = self.client
        return headers

    @property
    def options(self) -> dict[str, Any]:
        """How a WebSocket to the kernel is kept, where the library is not to decide."""
        return {}


Locate = Callable[[], KernelAddress]
"""Says where the kernel is now; AntiphonError `no_kernel` when there is none."""


def read_address(data: Path) -> KernelAddress:
    """Return where the kernel can be reached that serves the data folder now.

    Raises:
        AntiphonError: untrusted_folder; `no_kernel` if there is no readable address, if it leads
            to another machine, or if its process does not hold the folder's lock.
    """
    is_trusted(data)
    address = stated_address(data)
    if not (is_loopback(address.http) and is_loopback(address.sync.removesuffix("/sync"))):
        raise _no_kernel(
            data,
            f"{data / ADDRESS_FILE} names {address.http}, which is not on this machine, and is not"
            " believed",
        )
    if lock_holder(data) != address.pid:
        raise _no_kernel(
            data, f"process {address.pid}, which {data / ADDRESS_FILE} names, does not hold it"
        )
    return address


def stated_address(data: Path) -> KernelAddress:
    """Return what the address file in a data folder says, true or not.

    Raises:
        AntiphonError: `no_kernel` if there is no readable address.
    """
    path = data / ADDRESS_FILE
    try:
        return KernelAddress.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = "there is no" if isinstance(error, FileNotFoundError) else "cannot read"
        raise _no_kernel(data, f"{reason} {path}") from error


def lock_holder(data: Path, name: str = LOCK_FILE) -> int | None:
    """Return the process that holds the lock of a data folder now, None if none does.

    Args:
        name: of the file that is locked; by default the kernel's.
    """
    try:
        handle = os.open(data / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Let go at once; a kernel that starts at this moment tries again.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        return int(holder) if holder.isascii() and holder.isdigit() else None
    else:
        return None
    finally:
        os.close(handle)


def take_lock(path: Path, seconds: float = LOCK_SECONDS) -> int | None:
    """Take the lock of a file, which then names this process, until the descriptor is closed.

    Args:
        seconds: to wait for it at most.

    Returns:
        the descriptor; None if another process has the lock.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(lock)
                return None
            time.sleep(0.005)
        else:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
            return lock


class Listening(Protocol):
    """A server that has a port."""

    @property
    def port(self) -> int: ...


ListeningT = TypeVar("ListeningT", bound=Listening)


async def on_last_port(
    path: Path, port: int, listen: Callable[[int], Awaitable[ListeningT]]
) -> ListeningT:
    """Listen on a port; if it is 0, on that of the last time, or on any if that is taken.

    Args:
        path: file that holds the port for the next time.

    Raises:
        OSError: if the port that was asked for is taken.
    """
    last = _last_port(path) if port == 0 else None
    try:
        server = await listen(last or port)
    except OSError:
        if last is None:
            raise
        server = await listen(port)  # somebody else has the last one now
    write_private(path, f"{server.port}\n")
    return server


def _last_port(path: Path) -> int | None:
    try:
        port = int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return port if 0 < port < 65_536 else None


@lru_cache(maxsize=64)
def is_loopback(url: str) -> bool:
    """Return whether a URL has a host of this machine, and nothing else but a scheme and a port."""
    try:
        parts = urlsplit(url)
        name, _ = parts.hostname or "", parts.port
        if parts.username is not None or parts.path or parts.query or parts.fragment:
            return False
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _no_kernel(data: Path, reason: str) -> AntiphonError:
    return no_kernel(
        f"No kernel serves {data}: {reason}. Start one with `antiphon serve`.",
        data=str(data),
    )
