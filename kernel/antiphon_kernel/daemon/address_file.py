"""`kernel.json`: where this kernel can be reached, for whoever may read its data folder."""

from __future__ import annotations

import os
from pathlib import Path

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, stated_address
from antiphon_kernel.client.private_files import write_private
from antiphon_kernel.types.errors import AntiphonError


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
