"""Address of a kernel that a test serves itself."""

from __future__ import annotations

import os

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server import Server


def address_of(kernel: Kernel, doors: Server) -> KernelAddress:
    """Over the unix socket, as the owner."""
    return KernelAddress(
        pid=os.getpid(),
        kernel=kernel.id,
        sync=doors.sync,
        http=doors.http,
        socket=str(doors.socket),
        token=doors.token,
    )
