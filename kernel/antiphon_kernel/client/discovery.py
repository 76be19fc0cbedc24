"""Which kernels of this user are running, and for which folder.

Every kernel registers in the user's state folder; an entry is believed only if the kernel answers.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from platformdirs import user_state_path
from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.client.address import KernelAddress, read_address
from antiphon_kernel.types.errors import AntiphonError

PROBE_SECONDS: Final = 1.0


class RunningKernel(BaseModel):
    """One entry of the register."""

    model_config = ConfigDict(frozen=True)

    data: Path
    project: Path
    started_ms: int
    pid: int
    demo: bool = False
    """Made for a demo: those who join it are guests."""


def register_folder() -> Path:
    """The folder of entries, one file a kernel; made where it is missing, only for this user."""
    folder = user_state_path("antiphon") / "kernels"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def register_kernel(kernel: RunningKernel) -> Path:
    """Tell this user's clients about a kernel; returns the entry, to be removed at the end."""
    entry = register_folder() / f"{kernel.started_ms}-{kernel.pid}.json"
    fresh = entry.with_suffix(".tmp")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(kernel.model_dump_json() + "\n")
    fresh.replace(entry)
    return entry


def answers(address: KernelAddress) -> bool:
    """Whether anyone listens at the address (its unix socket if it names one, else TCP)."""
    try:
        if address.socket is not None:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(PROBE_SECONDS)
                probe.connect(address.socket)
            return True
        parts = urlsplit(address.http)
        with socket.create_connection((parts.hostname or "", parts.port or 80), PROBE_SECONDS):
            return True
    except OSError:
        return False


def kernel_at(data: Path) -> KernelAddress | None:
    """The kernel that serves the data folder now, None if none answers."""
    try:
        address = read_address(data)
    except AntiphonError:
        return None
    return address if answers(address) else None


def running_kernels() -> Iterator[RunningKernel]:
    """This user's kernels that answer, newest first; entries of ended ones are removed."""
    entries = []
    for path in register_folder().glob("*.json"):
        try:
            entries.append((RunningKernel.model_validate_json(path.read_bytes()), path))
        except (OSError, ValidationError):
            path.unlink(missing_ok=True)
    for kernel, path in sorted(entries, key=lambda entry: entry[0].started_ms, reverse=True):
        address = kernel_at(kernel.data)
        if address is not None and address.pid == kernel.pid:
            yield kernel
        elif not _is_alive(kernel.pid):
            path.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    """Whether there is a process of this number: a busy kernel may not answer for a moment."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def newest_kernel(folder: Path) -> RunningKernel | None:
    """The newest kernel whose project is `folder`, else that of the nearest folder above it."""
    running = list(running_kernels())
    for place in (folder, *folder.parents):
        for kernel in running:
            if kernel.project == place:
                return kernel
    return None
