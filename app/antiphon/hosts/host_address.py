"""Files of the hosts that let guests in, in their kernel's data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.client.address import lock_holder

HostKind = Literal["ssh", "web"]

LOCK_FILE: Final = "{}.lock"
ADDRESS_FILE: Final = "{}.json"
PORT_FILE: Final = "{}.port"
LOG_FILE: Final = "{}.log"
GUESTS_FOLDER: Final = "{}-guests"
"""Folder with one folder a guest, for what the guest's app keeps. In each, `{}` is the kind."""


class HostOptions(BaseModel):
    """Decisions of `antiphon share`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: HostKind
    bind: str
    """Address of the interface that it listens on."""
    port: int
    """0: the one of the last time, or any free one."""
    ask: bool = False
    """Whether owners are asked about unknown keys."""
    until: int | None = None
    """When it ends by itself, in milliseconds since the epoch."""
    url: str | None = None
    """Address at which a proxy serves the page."""


class HostAddress(HostOptions):
    """Address of a running host."""

    pid: int
    fingerprint: str | None = None
    """Fingerprint of the key of an SSH host."""


def running_host(data: Path, kind: HostKind) -> HostAddress | None:
    """Return the address of a host of a data folder; None if none runs."""
    holder = lock_holder(data, LOCK_FILE.format(kind))
    if holder is None:
        return None
    try:
        stored = (data / ADDRESS_FILE.format(kind)).read_bytes()
        address = HostAddress.model_validate_json(stored)
    except (OSError, ValidationError):
        return None
    return address if address.pid == holder else None
