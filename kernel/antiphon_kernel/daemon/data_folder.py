"""Exclusive use of a data folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from antiphon_kernel.client.address import lock_holder, take_lock
from antiphon_kernel.client.ownership import LOCK_FILE
from antiphon_kernel.client.trust import found
from antiphon_kernel.types.constants import DATA_FOLDER

HOLDER_SECONDS: Final = 1.0
"""A holder writes its process id right after it has got the lock, not in the same step."""


class DataFolderInUse(Exception):
    """Another kernel holds the data folder; `pid` is its process, None if it cannot be read."""

    def __init__(self, data: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{data} is in use: a kernel already serves it ({holder}).")


@contextmanager
def hold_folder(path: Path) -> Iterator[str | None]:
    """Have exclusive use of a data folder, made where it is missing, in a `with` block.

    The lock is the operating system's: it ends with the process, however that ends, so there is
    never a stale one to remove.

    Yields:
        what could not be remembered of the folder; None if all is well.

    Raises:
        AntiphonError: untrusted_folder.
        DataFolderInUse: if another kernel has it.
        OSError: if the folder cannot be made or written to.
    """
    warning = found(path)
    # One that sits in a project keeps itself out of its version control.
    if path.name == DATA_FOLDER:
        # Exclusively: one that came with a clone may be a link to anywhere.
        with suppress(FileExistsError), (path / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
    lock = take_lock(path / LOCK_FILE)
    if lock is None:
        deadline = time.monotonic() + HOLDER_SECONDS
        while (holder := lock_holder(path)) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        raise DataFolderInUse(path, holder)
    try:
        yield warning
    finally:
        os.ftruncate(lock, 0)
        os.close(lock)
