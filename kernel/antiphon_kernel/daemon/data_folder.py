"""The folder where one kernel keeps its files, held for the life of the process."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from antiphon_kernel.client.ownership import LOCK_FILE
from antiphon_kernel.client.trust import found
from antiphon_kernel.types.constants import DATA_FOLDER

HOLDER_SECONDS: Final = 1.0
"""A holder writes its process id right after it has got the lock, not in the same step."""

LOCK_SECONDS: Final = 0.1
"""A client that looks whether the lock is held has it for some microseconds."""


class DataFolderInUse(Exception):
    """Another kernel holds the data folder; `pid` is its process, None if it cannot be read."""

    def __init__(self, data: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{data} is in use: a kernel already serves it ({holder}).")
        self.data = data
        self.pid = pid


class DataFolder:
    """Exclusive use of a data folder, from `hold` until the end of the `with` block.

    The lock is the operating system's: it ends with the process, however that ends, so there is
    never a stale one to remove.
    """

    def __init__(self, path: Path, lock: int, warning: str | None = None) -> None:
        """`warning` is what could not be remembered of the folder."""
        self.path = path
        self.warning = warning
        self._lock = lock

    @classmethod
    def hold(cls, path: Path) -> DataFolder:
        """Create the folder where it is missing, and take it.

        Raises:
            AntiphonError: untrusted_folder.
            DataFolderInUse: if another kernel has it.
            OSError: if the folder cannot be made or written to.
        """
        warning = found(path)
        # One that sits in a project keeps itself out of its version control.
        if path.name == DATA_FOLDER:
            # Exclusively: one that came with a clone may be a link to anywhere.
            with (
                suppress(FileExistsError),
                (path / ".gitignore").open("x", encoding="utf-8") as file,
            ):
                file.write("*\n")
        lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        if not _lock(lock):
            holder = _wait_for_holder(lock)
            os.close(lock)
            raise DataFolderInUse(path, holder)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
        return cls(path, lock, warning)

    def release(self) -> None:
        """Let another kernel have the folder; a second release does nothing."""
        if self._lock >= 0:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _lock(lock: int) -> bool:
    """Take the lock unless another kernel has it."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        else:
            return True


def _wait_for_holder(lock: int) -> int | None:
    deadline = time.monotonic() + HOLDER_SECONDS
    while time.monotonic() < deadline:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace")
        if holder.endswith("\n"):
            return int(holder) if holder.strip().isdigit() else None
        time.sleep(0.01)
    return None
