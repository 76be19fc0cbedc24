"""The files that SQLite holds open, compared with the files at their paths.

SQLite goes on writing into a file that has been deleted or replaced, and reports success.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from antiphon_kernel.types.errors import AntiphonError, ErrorCode

SIDE_FILES: Final = ("-wal", "-shm")
"""How the names of the files end that SQLite keeps beside a database in WAL mode."""

_LOG: Final = SIDE_FILES[0]

_DELETED: Final = "deleted or moved away"
_REPLACED: Final = "replaced by another one"
_TRUNCATED: Final = "truncated"
_CHANGED: Final = "changed by another program"


class StorageLostError(AntiphonError):
    """A file of the kernel is not the one that SQLite writes to; nothing can be saved any more.

    What has been saved before can still be read through the open database.
    """

    def __init__(self, path: Path, what: str, copy: Path | None = None) -> None:
        """`copy`: the file to which everything that had been saved has been copied."""
        if copy is not None:
            advice = (
                f"All that was saved before is in {copy}: end the kernel, then bring it back with"
                f" `antiphon restore {copy}`."
            )
        else:
            advice = (
                "Keep what the kernel still has with `antiphon export`, end the kernel, put the"
                " file back or restore a backup, then start it again."
            )
        super().__init__(
            ErrorCode.STORAGE_FAILED,
            # The name alone comes first: the sentence may be cut where it is shown.
            f"Nothing more is saved: {path.name} was {what} while the kernel ran"
            f" (in {path.parent}). {advice}",
            path=str(path),
            **({"copy": str(copy)} if copy is not None else {}),
        )
        self.damaged = what in (_TRUNCATED, _CHANGED)
        """The file is there, but its content is not all that was saved."""
        self.path, self.what = path, what


class OpenFiles:
    """The database file and its write-ahead log, as they are when this is made.

    Belongs to SQLite's thread; the two checks of a commit take some microseconds. A check raises
    StorageLostError if it fails, sqlite3.OperationalError if it cannot be made now.
    """

    def __init__(self, path: Path) -> None:
        """Take note of the files; SQLite has them open.

        Raises:
            OSError: if one of them cannot be looked at.
        """
        self._database = path
        self._folder_name, self._database_name = str(path.parent), str(path)
        self._log = path.with_name(path.name + _LOG)
        database = path.stat()
        self._database_id, self._database_size = _identity(database), database.st_size
        self._database_time = database.st_mtime_ns
        self._entries: tuple[int, ...] | None = None
        self._log_file: int | None = None
        if self._log.exists():  # SQLite has none on a file system without shared memory
            # No lock is on this file that closing it would release, as there is on the database.
            self._log_file = os.open(self._log, os.O_RDONLY)
            self._log_id, self._log_size = _identity(os.fstat(self._log_file)), 0
        self.check_after_commit()

    def close(self) -> None:
        """Let go of the files."""
        if self._log_file is not None:
            os.close(self._log_file)
            self._log_file = None

    def check_before_commit(self) -> None:
        """See that the files are as the last commit left them: this one would hide a change."""
        if self._look_at_database().st_mtime_ns != self._database_time:
            raise StorageLostError(self._database, _CHANGED)
        self._look_at_log()
        self._look_at_names()

    def check_after_commit(self) -> None:
        """See that the paths still lead to the files that SQLite has written to."""
        self._database_time = self._look_at_database().st_mtime_ns
        self._look_at_names()
        self._look_at_log()

    def _look_at_names(self) -> None:
        # A look at the times of a file makes its next fsync dearer by half, so the log itself is
        # looked at only when a name in the folder has changed.
        folder = _stat(self._folder_name)
        entries = (folder.st_dev, folder.st_ino, folder.st_mtime_ns)
        if entries != self._entries:
            self._find_log()
            self._entries = entries

    def _look_at_database(self) -> os.stat_result:
        found = _stat(self._database_name)
        if (found.st_dev, found.st_ino) != self._database_id:
            raise StorageLostError(self._database, _REPLACED)
        # No command of the kernel's makes the files shorter while it runs.
        if found.st_size < self._database_size:
            raise StorageLostError(self._database, _TRUNCATED)
        self._database_size = found.st_size
        return found

    def _find_log(self) -> None:
        if self._log_file is not None and _identity(_stat(str(self._log))) != self._log_id:
            raise StorageLostError(self._log, _REPLACED)

    def _look_at_log(self) -> None:
        if self._log_file is not None:
            size = os.lseek(self._log_file, 0, os.SEEK_END)
            if size < self._log_size:
                raise StorageLostError(self._log, _TRUNCATED)
            self._log_size = size


def make_private(path: Path) -> None:
    """Make a database readable by this user only, whatever it was before; create it if missing.

    SQLite gives the files that it makes beside it the same mode. Raises OSError if it is another
    user's, or the folder cannot be written to.
    """
    if not path.exists():  # closing one that is open here would end SQLite's locks on it
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for suffix in ("", *SIDE_FILES):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.chmod(0o600)


def _identity(found: os.stat_result) -> tuple[int, int]:
    """Two equal ones mean the same file, as long as it is open."""
    return found.st_dev, found.st_ino


def _stat(path: str) -> os.stat_result:
    # A string: a `Path` is made into one at each look, which takes longer than the look.
    try:
        return os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        raise StorageLostError(Path(path), _DELETED) from None
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
