"""Where a kernel can be reached, as it writes it beside its data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.types.errors import AntiphonError, ErrorCode

ADDRESS_FILE: Final = "kernel.json"


class KernelAddress(BaseModel):
    """One running kernel: its process, its doors, and the owner's token."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    kernel: str
    sync: str
    """`ws://HOST:PORT/sync`; with `/` and a context's id or label it is a room."""
    http: str
    """`http://HOST:PORT`"""
    socket: str | None = None
    """Path of the unix socket, for clients of the same user on the same machine."""
    token: str | None = None
    client: str | None = None
    """A secret of this program's own, by which the kernel knows it when it comes again with the
    token of an invitation."""
    data: str | None = None
    """The folder where the kernel keeps its files."""

    @property
    def reachable_socket(self) -> Path | None:
        """The unix socket if there is one on this machine."""
        if self.socket is None:
            return None
        path = Path(self.socket)
        return path if path.is_socket() else None


Locate = Callable[[], KernelAddress]
"""Says where the kernel is now; AntiphonError `no_kernel` when there is none."""


def read_address(data: Path) -> KernelAddress:
    """The kernel that serves the data folder `data`.

    Raises:
        AntiphonError: `no_kernel` if no kernel has written a readable address there.
    """
    path = data / ADDRESS_FILE
    try:
        return KernelAddress.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = "there is no" if isinstance(error, FileNotFoundError) else "cannot read"
        raise AntiphonError(
            ErrorCode.NO_KERNEL,
            f"No kernel serves {data}: {reason} {path}. Start one with `antiphon serve`.",
            data=str(data),
        ) from error
