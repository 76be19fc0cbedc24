"""Exclusive use of a data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from antiphon_kernel.client.address import lock_holder, take_lock
from antiphon_kernel.client.ownership import LOCK_FILE
from antiphon_kernel.client.trust import found
from antiphon_kernel.types.constants import DATA_FOLDER


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
        raise DataFolderInUse(path, lock_holder(path))
    try:
        yield warning
    finally:
        os.ftruncate(lock, 0)
        os.close(lock)
