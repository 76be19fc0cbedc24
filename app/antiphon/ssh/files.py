"""Files of an SSH host in its kernel's data folder."""

from __future__ import annotations

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


def is_loopback(bind: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    return bind in ("localhost", "::1") or bind.startswith("127.")
