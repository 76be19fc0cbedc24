"""A data folder moved into a database of Postgres and back, and copies of a database in files.

What is written is there whole at the end, or not at all; nothing is taken out of the source.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from antiphon_kernel.maintenance.restore import Restored, restore
from antiphon_kernel.maintenance.run_checks import Report
from antiphon_kernel.storage import (
    AUTH_FILE,
    AUTH_SCHEMA,
    JOURNAL_FILE,
    AuthStore,
    Database,
    back_up,
    check_journal,
    install,
)
from antiphon_kernel.storage.postgres import place_of
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA
from antiphon_kernel.storage.store_copy import (
    AUTH,
    JOURNAL,
    PARTS,
    DatabaseStore,
    FileStore,
    Progress,
    copy_rows,
    tables,
)
from antiphon_kernel.storage.stores import open_tables
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import join_names

_Connection = psycopg.Connection[tuple[Any, ...]]

LARGE: Final = 2**30
"""Bytes of a database whose copies are worth a word."""


async def move_to_database(data: Path, store: str, told: Progress) -> int:
    """Copy everything in a data folder, which nobody may be using, into an empty database.

    Returns:
        the number of rows.

    Raises:
        AntiphonError: invalid_params if the database is not empty or kernels run on it;
            storage_failed. The database is empty then.
    """
    await asyncio.to_thread(check_journal, data / JOURNAL_FILE)
    await (await Database.open(data / JOURNAL_FILE)).close()
    parts = [JOURNAL]
    if (data / AUTH_FILE).exists():
        await (await AuthStore.open(data / AUTH_FILE)).database.close()
        parts.append(AUTH)
    for schema in (JOURNAL_SCHEMA, AUTH_SCHEMA):
        await (await open_tables(store, schema)).close()
    return await asyncio.to_thread(_fill, data, store, parts, told)


def _fill(data: Path, store: str, parts: Sequence[str], told: Progress) -> int:
    with _transaction(store) as connection, FileStore(data, parts) as source:
        _refuse_kernels(connection)
        every = [table for part in PARTS for table in tables(part)]
        sql = " UNION ALL ".join(f"(SELECT '{one}' FROM {one} LIMIT 1)" for one in every)
        if filled := _values(connection, sql):
            raise invalid_params(
                f"The database is not empty: there are rows in {join_names(filled)}. Name one that"
                " has never been used, or make a new one with `createdb`."
            )
        target = DatabaseStore(connection)
        rows = copy_rows(source, target, parts, told)
        target.continue_numbers()
        return rows


def move_from_database(store: str, data: Path, told: Progress) -> int:
    """Copy everything in a database, which no kernel may be using, into a data folder without any.

    Returns:
        the number of rows.

    Raises:
        AntiphonError: invalid_params if there is something already, or kernels run on the
            database; storage_failed. The folder is as it was then.
        OSError: if the folder cannot be written to.
    """
    names = (AUTH_FILE, JOURNAL_FILE)
    if there := [name for name in names if (data / name).exists()]:
        raise invalid_params(f"{data} has {join_names(there)} already: name a new folder.")
    for left in data.glob("moving-*"):  # by a move that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=data, prefix="moving-") as folder:
        copied = copy_database(store, Path(folder), told, alone=True)
        for name in names:
            install(Path(folder, name), data / name, data / f"{name}.before-move")
    return copied


def copy_database(
    store: str,
    folder: Path,
    told: Progress,
    *,
    parts: Sequence[str] = PARTS,
    alone: bool = False,
) -> int:
    """Write one moment of a database into files as a data folder has them; the number of rows.

    Args:
        alone: refuse to while kernels run on the database.

    Raises:
        AntiphonError: invalid_params, storage_failed.
    """
    with _transaction(store) as connection, FileStore(folder, parts, made=True) as target:
        if alone:
            _refuse_kernels(connection)
        for part, schema in POSTGRES_SCHEMAS.items():
            version, usable_from = _versions(connection, part)
            if version < schema.newest or usable_from > schema.newest:
                raise AntiphonError(
                    ErrorCode.STORAGE_FAILED,
                    f"The tables of {part} in the database have version {version} and can be used"
                    f" from {usable_from} on, this antiphon knows {schema.newest}: use the one that"
                    " its kernels are of.",
                )
        return copy_rows(DatabaseStore(connection), target, parts, told)


def back_up_database(store: str, target: Path, told: Progress) -> int:
    """Write the journal in a database into a file, beside kernels that run; its size in bytes.

    Raises:
        AntiphonError: invalid_params if the target exists; storage_failed.
        OSError: if its folder cannot be written to.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as folder:
        copy_database(store, Path(folder), told, parts=(JOURNAL,))
        return back_up(Path(folder, JOURNAL_FILE), target)


async def restore_into_database(backup: Path, store: str, clock: Clock, told: Progress) -> Restored:
    """Put a backup into an empty database, every context with a new epoch.

    Raises:
        AntiphonError: invalid_params, storage_failed; the database is empty then.
    """
    with tempfile.TemporaryDirectory(prefix="antiphon-restore-") as folder:
        restored = await restore(backup, Path(folder), clock)
        await move_to_database(Path(folder), store, told)
        return restored


def _refuse_kernels(connection: _Connection) -> None:
    """See that no kernel runs on a database, and none can begin a lease before the end of this."""
    connection.execute("LOCK TABLE journal.kernels IN SHARE MODE")
    sql = "SELECT address FROM journal.kernels WHERE lease_until > clock_timestamp()"
    if live := _values(connection, sql):
        raise invalid_params(
            f"Kernels run on the database, at {join_names(live)}: end them first; one that was"
            " killed counts for five seconds more."
        )


def database_size(store: str) -> int:
    """Return how many bytes the tables of a database take."""
    sql = (
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = ANY (%s) AND c.relkind = 'r'"
    )
    with _transaction(store) as connection:
        return int(_values(connection, sql, [list(PARTS)])[0])


def note_database(store: str, report: Report) -> None:
    """Note what only a database has: newer tables, a missing index, kernels that have died."""
    with _transaction(store) as connection:
        for part, schema in POSTGRES_SCHEMAS.items():
            if (version := _versions(connection, part)[0]) > schema.newest:
                report.notes.append(
                    f"The tables of {part} have version {version}, of a newer antiphon, which lets"
                    f" this one ({schema.newest}) use them."
                )
        if _values(connection, "SELECT to_regclass('journal.search_trigrams')") == [None]:
            report.notes.append(
                "The index of trigrams is missing, so that searching looks through every text."
                " With the extension pg_trgm: CREATE INDEX search_trigrams ON journal.search USING"
                " gin (text gin_trgm_ops)."
            )
        sql = (
            "SELECT format('The kernel at %s, which ended at %s without giving them up, has %s"
            " trees of contexts: the next kernel that is asked for one takes it.',"
            " address, date_trunc('second', lease_until), count(*)) FROM journal.owners"
            " JOIN journal.kernels ON number = kernel WHERE lease_until < clock_timestamp()"
            " GROUP BY number ORDER BY number"
        )
        report.notes += map(str, _values(connection, sql))


def _versions(connection: _Connection, part: str) -> tuple[int, int]:
    """Return the version of tables, and the oldest version whose antiphon may use them."""
    row = connection.execute(f"SELECT version, usable_from FROM {part}.schema").fetchone()
    return row or (0, 0)


def _values(connection: _Connection, sql: str, values: Sequence[object] | None = None) -> list[Any]:
    """Return the first column of a query."""
    return [row[0] for row in connection.execute(sql, values).fetchall()]


@contextmanager
def _transaction(store: str) -> Iterator[_Connection]:
    """Give a connection whose statements all see one moment, and happen all or not at all.

    Raises:
        AntiphonError: storage_failed for every error of Postgres or SQLite within.
    """
    place = place_of(store)
    try:
        with psycopg.connect(store, connect_timeout=4) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("SET LOCAL lock_timeout = '10s'")
            yield connection
    except psycopg.errors.UndefinedTable as error:
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"There is nothing of antiphon in the database {place}: name another one.",
            store=place,
        ) from error
    except (psycopg.Error, sqlite3.Error) as error:
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"The database {place} could not be copied: {str(error).strip()}. Nothing was kept of"
            " the copy.",
            store=place,
        ) from error
