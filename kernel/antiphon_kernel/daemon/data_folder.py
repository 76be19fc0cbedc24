"""The folder where one kernel keeps its files, held for the life of the process.

`kernel.json` and `kernel.port` in it say where it can be reached, now and the next time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from antiphon_kernel.client.address import (
    ADDRESS_FILE,
    KernelAddress,
    last_port,
    stated_address,
    take_lock,
)
from antiphon_kernel.client.ownership import LOCK_FILE
from antiphon_kernel.client.private_files import write_private
from antiphon_kernel.client.trust import found
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server import Server
from antiphon_kernel.types.constants import DATA_FOLDER
from antiphon_kernel.types.errors import AntiphonError

PORT_FILE: Final = "kernel.port"

HOLDER_SECONDS: Final = 1.0
"""A holder writes its process id right after it has got the lock, not in the same step."""


class DataFolderInUse(Exception):
    """Another kernel holds the data folder; `pid` is its process, None if it cannot be read."""

    def __init__(self, data: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{data} is in use: a kernel already serves it ({holder}).")
        self.pid = pid


@contextmanager
def hold_folder(path: Path) -> Iterator[str | None]:
    """Have exclusive use of a data folder, made where it is missing, in a `with` block.

    The lock is the operating system's: it ends with the process, however that ends, so there is
    never a stale one to remove.

    Yields:
        what could not be remembered of the folder; None if all is well.

    Raises:
        AntiphonError: untrusted_folder.
        DataFolderInUse: if another kernel has it.
        OSError: if the folder cannot be made or written to.
    """
    warning = found(path)
    # One that sits in a project keeps itself out of its version control.
    if path.name == DATA_FOLDER:
        # Exclusively: one that came with a clone may be a link to anywhere.
        with suppress(FileExistsError), (path / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
    lock = take_lock(path / LOCK_FILE)
    if lock is None:
        raise DataFolderInUse(path, _wait_for_holder(path / LOCK_FILE))
    try:
        yield warning
    finally:
        os.ftruncate(lock, 0)
        os.close(lock)


def _wait_for_holder(lock: Path) -> int | None:
    deadline = time.monotonic() + HOLDER_SECONDS
    while time.monotonic() < deadline:
        holder = lock.read_bytes()[:32].decode("ascii", "replace")
        if holder.endswith("\n"):
            return int(holder) if holder.strip().isdigit() else None
        time.sleep(0.01)
    return None


def write_address(data: Path, address: KernelAddress) -> None:
    """Put the address in place in one step, readable only by this user: it holds the token."""
    write_private(data / ADDRESS_FILE, address.model_dump_json(exclude_none=True) + "\n")


def remove_address(data: Path) -> None:
    """Take the address away if it is this process's own."""
    try:
        address = stated_address(data)
    except AntiphonError:
        return
    if address.pid == os.getpid():
        (data / ADDRESS_FILE).unlink(missing_ok=True)


async def serve_on_last_port(kernel: Kernel, data: Path, *, port: int, socket: Path) -> Server:
    """Listen on `port`; if that is 0, on the last one, or on any if that is taken.

    Raises:
        OSError: if the port that was asked for is taken.
    """
    last = last_port(data / PORT_FILE) if port == 0 else None
    server = None
    if last is not None:
        try:
            server = await Server(kernel).start(port=last, socket=socket)
        except OSError:
            server = None  # somebody else has it now
    if server is None:
        server = await Server(kernel).start(port=port, socket=socket)
    write_private(data / PORT_FILE, f"{server.port}\n")
    return server
