"""Discovery of this user's running kernels and their folders.

Every kernel registers in the user's state folder; an entry is believed only while the kernel holds
the lock of its data folder, which it does from before it listens until it has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.client.address import KernelAddress, read_address
from antiphon_kernel.client.ownership import make_state_folder, state_path, write_private
from antiphon_kernel.types.constants import DEMO_PROJECT
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_REGISTER: Final = "kernels"
"""The folder of entries in the user's state folder, one file a kernel."""


class RunningKernel(BaseModel):
    """One entry of the register."""

    model_config = ConfigDict(frozen=True)

    data: Path
    project: Path
    """Folder in which `antiphon join` finds it: its project; of a demo, where it was started."""
    started_ms: int
    pid: int
    demo: bool = False
    """Made for a demo: those who join it are guests."""


def project_of(data: Path, project: Path) -> Path:
    """Return the project of a data folder: the demo's that is in it, else `project`."""
    own = data / DEMO_PROJECT
    return own if own.is_dir() else project


def register_kernel(kernel: RunningKernel) -> Path:
    """Tell this user's clients about a kernel; returns the entry, to be removed at the end.

    Raises:
        OSError: if the user's state folder cannot be written to.
    """
    entry = make_state_folder(_REGISTER) / f"{kernel.started_ms}-{kernel.pid}.json"
    write_private(entry, kernel.model_dump_json() + "\n")
    return entry


def kernel_at(data: Path) -> KernelAddress | None:
    """Return the kernel that serves the data folder now, None if none does.

    Raises:
        AntiphonError: untrusted_folder.
    """
    try:
        return read_address(data)
    except AntiphonError as error:
        if error.code is ErrorCode.NO_KERNEL:
            return None
        raise


def running_kernels() -> Iterator[RunningKernel]:
    """This user's kernels, newest first; entries of ended ones are removed."""
    entries = []
    try:
        register = state_path(_REGISTER)
    except OSError:
        return
    for path in register.glob("*.json"):
        try:
            entries.append((RunningKernel.model_validate_json(path.read_bytes()), path))
        except (OSError, ValidationError):
            path.unlink(missing_ok=True)
    for kernel, path in sorted(entries, key=lambda entry: entry[0].started_ms, reverse=True):
        try:
            address = kernel_at(kernel.data)
        except AntiphonError:  # somebody else's folder has come to its place
            address = None
        if address is not None and address.pid == kernel.pid:
            yield kernel
        else:
            path.unlink(missing_ok=True)


def newest_kernel(folder: Path) -> RunningKernel | None:
    """The newest kernel whose project is `folder`, else that of the nearest folder above it."""
    running = list(running_kernels())
    places = (folder, *folder.parents)
    return next((one for place in places for one in running if one.project == place), None)
