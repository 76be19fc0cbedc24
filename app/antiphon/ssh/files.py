"""Files of an SSH host in its kernel's data folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.client.address import lock_holder

LOCK_FILE: Final = "ssh.lock"
KEY_FILE: Final = "ssh.key"
"""The host key: readable by this user only, and the same from one start to the next."""
ADDRESS_FILE: Final = "ssh.json"
PORT_FILE: Final = "ssh.port"
LOG_FILE: Final = "ssh.log"
GUESTS_FOLDER: Final = "ssh-guests"
"""Folder with one folder a guest, for what the guest's app keeps."""


class SshAddress(BaseModel):
    """Address of a running SSH host."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    bind: str
    """Address of the interface that it listens on."""
    port: int
    fingerprint: str
    """Fingerprint of the host key."""
    ask: bool
    """Whether owners are asked about unknown keys."""
    until: int | None = None
    """When it ends by itself, in milliseconds since the epoch."""


def running_host(data: Path) -> SshAddress | None:
    """Return the address of the SSH host of a data folder; None if none runs."""
    holder = lock_holder(data, LOCK_FILE)
    if holder is None:
        return None
    try:
        address = SshAddress.model_validate_json((data / ADDRESS_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return address if address.pid == holder else None


def hold_lock(data: Path) -> int | None:
    """Take the lock of the data folder's SSH host until this process ends; None if it is taken."""
    lock = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
    return lock


def is_loopback(bind: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    return bind in ("localhost", "::1") or bind.startswith("127.")
