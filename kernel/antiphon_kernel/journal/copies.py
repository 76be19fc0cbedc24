"""Copies of a journal file, made beside the kernel that writes it, and put back.

Everything here is one moment of the journal: a transaction is in a copy whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from antiphon_kernel.journal.schema import MIGRATIONS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

JOURNAL_FILE: Final = "journal.db"
"""The journal's name in a data folder."""

_WAIT_SECONDS: Final = 30.0
_PAGES: Final = 2_000
_LOG: Final = "-wal"
_SIDE_FILES: Final = (_LOG, "-shm")


def copy_pages(journal: Path, target: Path) -> None:
    """Copy a journal as it is, damage included.

    Raises:
        AntiphonError: storage_failed if there is no journal or it cannot be read.
    """
    try:
        with closing(_open(journal)) as source, closing(sqlite3.connect(target)) as copy:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            source.backup(copy, pages=_PAGES)
    except sqlite3.Error as error:
        raise _unusable(journal, error) from error


def back_up(journal: Path, target: Path) -> int:
    """Write a copy without the free space; its size in bytes.

    The copy is complete and on disk before it has its name.

    Raises:
        AntiphonError: invalid_params if the target exists; storage_failed.
    """
    with closing(_open(journal)) as source:
        return write_copy(source, journal, target)


def write_copy(source: sqlite3.Connection, journal: Path, target: Path) -> int:
    """Do the same from an open connection, which need not lead to the file at `journal` any more.

    Raises:
        AntiphonError: invalid_params if the target exists; storage_failed.
    """
    if target.exists():
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"{target} is there already and is not overwritten: name another file.",
            path=str(target),
        )
    fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Made here: a place that cannot be written to is no fault of the journal.
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        source.execute("VACUUM INTO ?", (str(fresh),))
        check_journal(fresh)
        _to_disk(fresh)
        # A link and not a rename: what has come under that name meanwhile stays.
        target.hardlink_to(fresh)
        _to_disk(target.parent)
        return target.stat().st_size
    except sqlite3.Error as error:
        raise _unusable(journal, error) from error
    except OSError as error:
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"The backup {target} could not be written: {error.strerror}. Choose another place.",
            path=str(target),
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def check_journal(path: Path) -> None:
    """See that a file is a sound journal of a version that is known here.

    Raises:
        AntiphonError: storage_failed, saying what it is instead.
    """
    try:
        with closing(_open(path)) as database:
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(5)")]
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_schema")}
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
    if version > len(MIGRATIONS):
        what = f"it has version {version}, this antiphon knows {len(MIGRATIONS)}"
    elif found != ["ok"]:
        what = "it is damaged: " + "; ".join(found)
    elif not {"ops", "contexts", "kernel"} <= tables:
        what = "it is another kind of database"
    else:
        return
    raise AntiphonError(
        ErrorCode.STORAGE_FAILED,
        f"{path} cannot be used as a journal: {what}. Use another backup.",
        path=str(path),
    )


def put_in_place(fresh: Path, journal: Path, aside: Path) -> bool:
    """Make `fresh` the journal; the one that was there, if any, is called `aside` from now on.

    No kernel may be using the folder. At every moment there is a journal, old or new.

    Raises:
        OSError: if the folder cannot be written to.
    """
    _to_disk(fresh)
    was_there = journal.exists()
    if was_there:
        _fold_log(journal)
        for suffix in _SIDE_FILES:
            side = journal.with_name(journal.name + suffix)
            if side.exists():
                # Damaged beyond opening: the parts stay together, and away from the new journal.
                side.rename(aside.with_name(aside.name + suffix))
        aside.hardlink_to(journal)
    fresh.replace(journal)
    _to_disk(journal.parent)
    return was_there


def _fold_log(journal: Path) -> None:
    """Bring what is only in the write-ahead log into the file, if it can be opened."""
    try:
        with closing(_open(journal)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA journal_mode = DELETE")
    except (sqlite3.Error, AntiphonError):
        return  # it is kept as it is, with its log


def _open(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"There is no journal at {path}: name the kernel's data folder with --data.",
            path=str(path),
        )
    return sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unusable(path: Path, error: sqlite3.Error) -> AntiphonError:
    return AntiphonError(
        ErrorCode.STORAGE_FAILED,
        f"{path} could not be read as a journal: {error}. `antiphon doctor` says more about the"
        " kernel's own; of backups use another one.",
        path=str(path),
    )
