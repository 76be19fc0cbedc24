"""A data folder moved into a database of Postgres and back, and copies of a database in files.

What is written is there whole at the end, or not at all; nothing is taken out of the source.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from antiphon_kernel.storage import JOURNAL_FILE, check_journal, install
from antiphon_kernel.storage.postgres import place_of
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.storage.store_copy import (
    FILES,
    DatabaseTables,
    copy_rows,
    open_files,
    tables,
)
from antiphon_kernel.storage.stores import open_tables
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import join_names

_Connection = psycopg.Connection[tuple[Any, ...]]


async def move_to_database(data: Path, store: str) -> int:
    """Copy a data folder, which nobody may be using, into an empty database; the number of rows.

    Raises:
        AntiphonError: invalid_params if the database is not empty or kernels run on it;
            storage_failed. The database is empty then.
    """
    await asyncio.to_thread(check_journal, data / JOURNAL_FILE)
    for name, schema in reversed(FILES.items()):  # that of members refers to the other one
        for place in (data / name, store):
            await (await open_tables(place, schema)).close()
    return await asyncio.to_thread(_fill, data, store)


def _fill(data: Path, store: str) -> int:
    with _transaction(store) as connection, open_files(data) as source:
        _refuse_kernels(connection)
        sql = " UNION ALL ".join(f"(SELECT '{one}' FROM {one} LIMIT 1)" for one in tables())
        if filled := _values(connection, sql):
            raise invalid_params(
                f"The database is not empty: there are rows in {join_names(filled)}. Make a new one"
                " with `createdb`."
            )
        return copy_rows(source, DatabaseTables(connection))


def move_from_database(store: str, data: Path) -> int:
    """Copy a database, which no kernel may be using, into a new data folder; the number of rows.

    Raises:
        AntiphonError: invalid_params if there is something already, or kernels run on the
            database; storage_failed. The folder is as it was then.
        OSError: if the folder cannot be written to.
    """
    if there := [name for name in FILES if (data / name).exists()]:
        raise invalid_params(f"{data} has {join_names(there)} already: name a new folder.")
    for left in data.glob("moving-*"):  # by a move that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=data, prefix="moving-") as folder:
        copied = copy_database(store, Path(folder), alone=True)
        for name in FILES:
            install(Path(folder, name), data / name, data / f"{name}.before-move")
    return copied


def copy_database(store: str, folder: Path, *, alone: bool = False) -> int:
    """Write one moment of a database into files as a data folder has them; the number of rows.

    Args:
        alone: refuse to while kernels run on the database.

    Raises:
        AntiphonError: invalid_params, storage_failed.
    """
    with _transaction(store) as connection, open_files(folder, made=True) as target:
        if alone:
            _refuse_kernels(connection)
        for name, schema in POSTGRES_SCHEMAS.items():
            sql = f"SELECT version, usable_from FROM {name}.schema"
            version, usable_from = connection.execute(sql).fetchone() or (0, 0)
            if not usable_from <= schema.newest <= version:
                raise AntiphonError(
                    ErrorCode.STORAGE_FAILED,
                    f"The tables of {name} have version {version} and can be used from"
                    f" {usable_from} on, this antiphon knows {schema.newest}: use the one of the"
                    " kernels there.",
                )
        return copy_rows(DatabaseTables(connection), target)


def _refuse_kernels(connection: _Connection) -> None:
    """See that no kernel runs on a database, and none can begin a lease before the end of this."""
    connection.execute("LOCK TABLE journal.kernels IN SHARE MODE")
    sql = "SELECT address FROM journal.kernels WHERE lease_until > clock_timestamp()"
    if live := _values(connection, sql):
        raise invalid_params(
            f"Kernels run on the database, at {join_names(live)}: end them first; one that was"
            " killed counts for five seconds more."
        )


def notes_of(store: str) -> list[str]:
    """Return what is to be said of a database beside the findings of the checks."""
    sql = (
        "SELECT 'The index of trigrams is missing, so that searching looks through every text."
        " With the extension pg_trgm: CREATE INDEX search_trigrams ON journal.search USING"
        " gin (text gin_trgm_ops).' WHERE to_regclass('journal.search_trigrams') IS NULL"
    )
    with _transaction(store) as connection:
        return _values(connection, sql)


def _values(connection: _Connection, sql: str) -> list[str]:
    """Return the first column of a query."""
    return [row[0] for row in connection.execute(sql)]


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
    except (psycopg.Error, sqlite3.Error, UnicodeError) as error:
        is_empty = isinstance(error, psycopg.errors.UndefinedTable)
        why = "there is nothing of antiphon in it" if is_empty else str(error).strip()
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"The database {place} could not be copied: {why}. Nothing was kept of the copy.",
            store=place,
        ) from error
