"""Copies of a journal file, made beside the kernel that writes it, and put back.

Everything here is one moment of the journal: a transaction is in a copy whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from antiphon_kernel.storage.open_files import SIDE_FILES, make_private
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA
from antiphon_kernel.types.errors import AntiphonError, invalid_params, storage_failed

JOURNAL_FILE: Final = "journal.db"
"""The journal's name in a data folder."""

_WAIT_SECONDS: Final = 30.0
_PAGES: Final = 2_000
_LOG: Final = SIDE_FILES[0]

_NOT_WRITABLE: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""How opening a journal fails whose folder cannot be written to: SQLite makes files in there."""

_UNREADABLE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_READ_FAILED: Final = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ})


def copy_pages(journal: Path, target: Path) -> None:
    """Copy a journal as it is, damage included. Raises AntiphonError storage_failed."""
    try:
        make_private(target)
        with open_to_read(journal) as source, closing(sqlite3.connect(target)) as copy:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            try:
                source.backup(copy, pages=_PAGES)
            except sqlite3.Error as error:
                if not _is_about_the_target(error):
                    raise
                raise storage_failed(
                    f"{target}, a copy of {journal} to be looked at, could not be written:"
                    f" {error}. Make room there, or name another folder in TMPDIR.",
                    path=str(target),
                ) from error
    except sqlite3.Error as error:
        advice = "Check the disk; `antiphon restore` brings back a backup."
        raise _unusable(journal, error, advice) from error


def back_up(journal: Path, target: Path) -> int:
    """Write a copy as `write_copy` does; its size in bytes."""
    with open_to_read(journal) as source:
        return write_copy(source, journal, target)


def write_copy(source: sqlite3.Connection, journal: Path, target: Path) -> int:
    """Write a copy without the free space; its size in bytes.

    The copy is complete and on disk before it has its name. The connection need not lead to the
    file at `journal` any more.

    Raises:
        AntiphonError: invalid_params if the target exists; storage_failed.
    """
    if target.exists():
        raise invalid_params(
            f"{target} is there already and is not overwritten: name another file.",
            path=str(target),
        )
    fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Made here: a place that cannot be written to is no fault of the journal.
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            source.execute("VACUUM INTO ?", (str(fresh),))
        except sqlite3.Error as error:
            if not _is_about_the_target(error):
                raise
            raise _not_written(target, str(error)) from error
        check_journal(fresh)
        _sync_to_disk(fresh)
        # A link and not a rename: what has come under that name meanwhile stays.
        target.hardlink_to(fresh)
        _sync_to_disk(target.parent)
        return target.stat().st_size
    except sqlite3.Error as error:
        raise _unusable(journal, error, "`antiphon doctor` says more.") from error
    except OSError as error:
        raise _not_written(target, str(error.strerror)) from error
    finally:
        fresh.unlink(missing_ok=True)


def check_journal(path: Path) -> None:
    """See that a file is a sound journal of a version that is known here; else storage_failed."""
    try:
        with open_to_read(path) as database:
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(5)")]
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_schema")}
    except sqlite3.Error as error:
        raise _unusable(path, error, "Use another backup.") from error
    if (refusal := JOURNAL_SCHEMA.refusal(version)) is not None:
        what = f"it {refusal}"
    elif found != ["ok"]:
        what = "it is damaged: " + "; ".join(found)
    elif not {"ops", "contexts", "kernel"} <= tables:
        what = "it is another kind of database"
    else:
        return
    raise storage_failed(
        f"{path} cannot be used as a journal: {what}. Use another backup.",
        path=str(path),
    )


def install(fresh: Path, journal: Path, aside: Path) -> bool:
    """Make `fresh` the journal; the one that was there, if any, is called `aside` from now on.

    No kernel may be using the folder. At every moment there is a journal, old or new. Raises
    OSError if the folder cannot be written to.
    """
    _sync_to_disk(fresh)
    was_there = journal.exists()
    if was_there:
        # What is only in the log goes into the file, if that can be opened; else it stays there.
        with suppress(sqlite3.Error, AntiphonError), closing(_open(journal)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA journal_mode = DELETE")
        make_private(journal)
        for suffix in SIDE_FILES:
            side = journal.with_name(journal.name + suffix)
            if side.exists():
                # Damaged beyond opening: the parts stay together, and away from the new journal.
                side.rename(aside.with_name(aside.name + suffix))
        aside.hardlink_to(journal)
    fresh.replace(journal)
    _sync_to_disk(journal.parent)
    return was_there


@contextmanager
def open_to_read(journal: Path, *, untouched: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a journal to read it, also one in a folder that cannot be written to.

    Args:
        untouched: make no file beside it and change none, which SQLite does when it opens a
            journal that was not closed; for one that no kernel may be writing.

    Raises:
        AntiphonError: storage_failed if there is none.
        sqlite3.Error: if it cannot be read.
    """
    if not untouched:
        database = _open(journal)
        try:
            database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error as error:
            database.close()
            if error.sqlite_errorcode & 0xFF not in _NOT_WRITABLE:
                raise
        else:
            with closing(database):
                yield database
            return
    log = journal.with_name(journal.name + _LOG)
    if not log.exists() or log.stat().st_size == 0:
        with closing(_open(journal, "?mode=ro&immutable=1")) as database:
            yield database
        return
    # What is in the log alone belongs to the journal: SQLite puts the two together, in a copy.
    with tempfile.TemporaryDirectory(prefix="antiphon-read-") as folder:
        copy = Path(folder) / journal.name
        shutil.copyfile(journal, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        with closing(_open(copy)) as database:
            yield database


def _is_about_the_target(error: sqlite3.Error) -> bool:
    """Whether writing a copy has failed, and not reading what is copied."""
    code = error.sqlite_errorcode
    return code not in _READ_FAILED and code & 0xFF not in _UNREADABLE


def _open(path: Path, options: str = "") -> sqlite3.Connection:
    if not path.is_file():
        raise storage_failed(
            f"There is no journal at {path}: name the kernel's data folder with --data.",
            path=str(path),
        )
    uri = f"file:{quote(os.fsencode(path.absolute()))}{options}"
    return sqlite3.connect(uri, _WAIT_SECONDS, isolation_level=None, uri=True)


def _sync_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unusable(path: Path, error: sqlite3.Error, advice: str) -> AntiphonError:
    return storage_failed(
        f"{path} could not be read as a journal: {error}. {advice}",
        path=str(path),
    )


def _not_written(target: Path, reason: str) -> AntiphonError:
    return storage_failed(
        f"The backup {target} could not be written: {reason}. Choose another place.",
        path=str(target),
    )
