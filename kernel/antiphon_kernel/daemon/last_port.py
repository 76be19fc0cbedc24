"""The port that the kernel of a data folder had the last time: invitations name it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from antiphon_kernel.client.private_files import write_private
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server import Server, serve

PORT_FILE: Final = "kernel.port"


async def serve_on_last_port(kernel: Kernel, data: Path, *, port: int, socket: Path) -> Server:
    """Open the doors on `port`; if that is 0, on the last one, or on any if that is taken.

    Raises:
        OSError: if the port that was asked for is taken.
    """
    last = _read(data) if port == 0 else None
    doors = None
    if last is not None:
        try:
            doors = await serve(kernel, port=last, socket=socket)
        except OSError:
            doors = None  # somebody else has it now
    if doors is None:
        doors = await serve(kernel, port=port, socket=socket)
    write_private(data / PORT_FILE, f"{doors.port}\n")
    return doors


def _read(data: Path) -> int | None:
    try:
        port = int((data / PORT_FILE).read_text("ascii"))
    except (OSError, ValueError):
        return None
    return port if 0 < port < 65536 else None
