"""`kernel.json`: where this kernel can be reached, for whoever may read its data folder."""

from __future__ import annotations

import os
from pathlib import Path

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, read_address
from antiphon_kernel.types.errors import AntiphonError


def write_address(data: Path, address: KernelAddress) -> None:
    """Put the address in place in one step, readable only by this user: it holds the token."""
    path = data / ADDRESS_FILE
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(address.model_dump_json(exclude_none=True) + "\n")
    fresh.replace(path)


def remove_address(data: Path) -> None:
    """Take the address away if it is this process's own."""
    try:
        address = read_address(data)
    except AntiphonError:
        return
    if address.pid == os.getpid():
        (data / ADDRESS_FILE).unlink(missing_ok=True)
