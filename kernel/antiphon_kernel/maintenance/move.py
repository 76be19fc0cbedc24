"""A data folder copied into a database of Postgres and back.

What is written is there whole at the end, or not at all; nothing is taken out of the source.

Both are read and written with the same names: a file is attached to SQLite under the name of its
schema in Postgres. The tables are those of the files; what only a database has (leases, owners)
stays where it is. Between the two, rows are as Postgres has them: without a NUL, and with touched
blocks as a text.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg

from antiphon_kernel.storage import AUTH_FILE, JOURNAL_FILE, check_journal, install
from antiphon_kernel.storage.open_files import make_private
from antiphon_kernel.storage.postgres import STORED_NUL, place_of
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.storage.schema import AUTH_SCHEMA, JOURNAL_SCHEMA, Schema
from antiphon_kernel.storage.stores import open_tables
from antiphon_kernel.types.errors import invalid_params, storage_failed
from antiphon_kernel.types.quoting import join_names

_Row = tuple[Any, ...]
_Connection = psycopg.Connection[_Row]

FILES: Final = {AUTH_FILE: AUTH_SCHEMA, JOURNAL_FILE: JOURNAL_SCHEMA}


@cache
def tables() -> dict[str, list[str]]:
    """Return the columns of each table of the files that hold something of their own."""
    found = {}
    for schema in FILES.values():
        with closing(sqlite3.connect(":memory:")) as database:
            _make_tables(database, schema)
            sql = (
                "SELECT name, type FROM pragma_table_list WHERE schema = 'main'"
                " AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite_%'"
            )
            for name, kind in database.execute(sql).fetchall():
                columns = [f'"{one[1]}"' for one in database.execute(f"PRAGMA table_info({name})")]
                numbered = ["rowid"] if kind == "virtual" else []
                found[f"{schema.name}.{name}"] = numbered + columns
    return found


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
    with _transaction(store) as connection, _open_files(data) as source:
        _refuse_kernels(connection)
        sql = " UNION ALL ".join(f"(SELECT '{one}' FROM {one} LIMIT 1)" for one in tables())
        if filled := [row[0] for row in connection.execute(sql)]:
            raise invalid_params(
                f"The database is not empty: there are rows in {join_names(filled)}. Make a new one"
                " with `createdb`."
            )
        return _copy_rows(source, DatabaseTables(connection))


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
    with _transaction(store) as connection, _open_files(folder, made=True) as target:
        if alone:
            _refuse_kernels(connection)
        for name, schema in POSTGRES_SCHEMAS.items():
            sql = f"SELECT version, usable_from FROM {name}.schema"
            version, usable_from = connection.execute(sql).fetchone() or (0, 0)
            if not usable_from <= schema.newest <= version:
                raise storage_failed(
                    f"The tables of {name} have version {version} and can be used from"
                    f" {usable_from} on, this antiphon knows {schema.newest}: use the one of the"
                    " kernels there.",
                )
        return _copy_rows(DatabaseTables(connection), target)


def _refuse_kernels(connection: _Connection) -> None:
    """See that no kernel runs on a database, and none can begin a lease before the end of this."""
    connection.execute("LOCK TABLE journal.kernels IN SHARE MODE")
    sql = "SELECT address FROM journal.kernels WHERE lease_until > clock_timestamp()"
    if live := [row[0] for row in connection.execute(sql)]:
        raise invalid_params(
            f"Kernels run on the database, at {join_names(live)}: end them first; one that was"
            " killed counts for five seconds more."
        )


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
        raise storage_failed(
            f"The database {place} could not be copied: {why}. Nothing was kept of the copy.",
            store=place,
        ) from error


@contextmanager
def _open_files(folder: Path, *, made: bool = False) -> Iterator[FileTables]:
    """Open the files of a data folder, or make them; without an error, what is written is kept."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for name, schema in FILES.items():
            if made:
                make_private(folder / name)
                with closing(sqlite3.connect(folder / name)) as database:
                    _make_tables(database, schema)
            connection.execute(f"ATTACH ? AS {schema.name}", (str(folder / name),))
        connection.execute("BEGIN")
        connection.text_factory = lambda text: text.decode().replace("\0", STORED_NUL)
        yield FileTables(connection)
        connection.execute("COMMIT")


def _make_tables(database: sqlite3.Connection, schema: Schema) -> None:
    for number, sql in schema.steps(0):
        database.executescript(f"{sql} PRAGMA user_version = {number};")


class FileTables:
    """The tables of both files, in a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, table: str) -> Iterator[_Row]:
        """Return every row of a table, in any order."""
        columns = ", ".join(tables()[table]).replace('"blocks"', "CAST(blocks AS TEXT)")
        return self._connection.execute(f"SELECT {columns} FROM {table}")

    def add(self, table: str, rows: Iterable[_Row]) -> int:
        """Write rows into a table that has none of them; how many."""
        columns = tables()[table]
        values = ", ".join(
            f"iif(?{at} GLOB '*[^0-9]*' OR ?{at} = '', ?{at}, CAST(?{at} AS INTEGER))"
            if column == '"blocks"'
            else f"?{at}"
            for at, column in enumerate(columns, 1)
        )
        inserted = self._connection.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})",
            (
                [one.replace(STORED_NUL, "\0") if isinstance(one, str) else one for one in row]
                for row in rows
            ),
        )
        return inserted.rowcount


class DatabaseTables:
    """The same tables of a database of Postgres, in a transaction of the connection."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def rows(self, table: str) -> Iterator[_Row]:
        where = " WHERE key <> 'cluster_secret'" if table == "journal.kernel" else ""
        with self._connection.cursor("rows") as cursor:
            cursor.itersize = 1_000
            query = f"SELECT {', '.join(tables()[table])} FROM {table}{where}"
            yield from cursor.execute(query, binary=True)

    def add(self, table: str, rows: Iterable[_Row]) -> int:
        """Write rows into an empty table; how many. Numbers that are drawn later follow theirs."""
        columns = tables()[table]
        stored = "journal.stored_ops" if table == "journal.ops" else table  # `ops` is a view
        query = f"COPY {stored} ({', '.join(columns)}) FROM STDIN"
        cursor = self._connection.cursor()
        with cursor.copy(query) as copy:
            for row in rows:
                copy.write_row(row)
        if columns[0] == '"number"':
            drawn = f"pg_get_serial_sequence('{table}', 'number')"
            if table == "journal.contexts":
                drawn = "'journal.context_numbers'"
            query = f"SELECT setval({drawn}, max(number)) FROM {table} HAVING max(number) > 0"
            self._connection.execute(query)
        return cursor.rowcount


def _copy_rows(source: FileTables | DatabaseTables, target: FileTables | DatabaseTables) -> int:
    """Copy every table, and compare what is there then; the number of rows.

    Raises:
        AntiphonError: storage_failed if something has not arrived as it was.
    """
    copied = 0
    for table in tables():
        copied += target.add(table, source.rows(table))
        if _digest(source.rows(table)) != _digest(target.rows(table)):
            raise storage_failed(
                f"{table} has not arrived as it was: rows hold something else, or are missing."
                " Nothing was kept of the copy; `antiphon doctor` says whether the source is"
                " sound.",
            )
    return copied


def _digest(rows: Iterable[_Row]) -> int:
    """Return a checksum of rows, whatever their order is."""
    return sum(int.from_bytes(hashlib.sha256(repr(row).encode()).digest()) for row in rows)
