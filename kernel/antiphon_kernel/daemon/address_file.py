"""`kernel.json` and `kernel.port`: where this kernel can be reached, now and the next time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from antiphon_kernel.client.address import (
    ADDRESS_FILE,
    KernelAddress,
    last_port,
    stated_address,
)
from antiphon_kernel.client.private_files import write_private
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server import Server, serve
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


PORT_FILE: Final = "kernel.port"


async def serve_on_last_port(kernel: Kernel, data: Path, *, port: int, socket: Path) -> Server:
    """Listen on `port`; if that is 0, on the last one, or on any if that is taken.

    Raises:
        OSError: if the port that was asked for is taken.
    """
    last = last_port(data / PORT_FILE) if port == 0 else None
    server = None
    if last is not None:
        try:
            server = await serve(kernel, port=last, socket=socket)
        except OSError:
            server = None  # somebody else has it now
    if server is None:
        server = await serve(kernel, port=port, socket=socket)
    write_private(data / PORT_FILE, f"{server.port}\n")
    return server
