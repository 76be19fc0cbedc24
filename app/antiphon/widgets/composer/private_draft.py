"""A draft that nobody else sees, in a file of its author's."""

from __future__ import annotations

import fcntl
import os
from hashlib import sha256
from pathlib import Path
from typing import Final

from antiphon_kernel.client.private_files import write_private

FOLDER: Final = "drafts"

WINDOWS: Final = 16
"""Windows of one person that can have a private draft in one context at once."""


class PrivateDraftFile:
    """The text of one window's private draft; held from `take` to `close`."""

    def __init__(self, folder: Path, place: str) -> None:
        """`place` names the kernel, for which the state `folder` holds a file for each context."""
        self._folder = folder / FOLDER
        self._place = place
        self._path: Path | None = None
        self._lock: int | None = None

    def take(self, context: str) -> str:
        """Take a file that no other window has, one with a text if there is one; return its text.

        Raises:
            OSError: if there is none to be had.
        """
        name = sha256(f"{self._place}\n{context}".encode()).hexdigest()[:32]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = [self._folder / f"{name}-{number}.txt" for number in range(WINDOWS)]
        # `sorted` keeps the order of equals: those with a text come first.
        for path in sorted(files, key=lambda one: not one.exists()):
            lock = _lock(path.with_suffix(".lock"))
            if lock is not None:
                self._path, self._lock = path, lock
                return path.read_text("utf-8") if path.exists() else ""
        raise OSError(0, f"{WINDOWS} other windows have private drafts here")

    @property
    def is_held(self) -> bool:
        return self._path is not None

    def write(self, text: str) -> None:
        """Keep a text; none if it is empty.

        Raises:
            OSError: if it cannot be written.
        """
        if self._path is None:
            return
        if text:
            write_private(self._path, text)
        else:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the file to other windows."""
        if self._lock is not None:
            os.close(self._lock)
            self._path = self._lock = None


def _lock(path: Path) -> int | None:
    """Return a lock on a file that is held until it is closed; None if somebody else has one."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
