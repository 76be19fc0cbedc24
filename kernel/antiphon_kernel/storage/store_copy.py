"""Every row of a data folder's files copied into a database of Postgres, or back.

Both are read and written with the same names: a file is attached to SQLite under the name of its
schema in Postgres. The tables are those of the files; what only a database has (leases, owners)
stays where it is. Between the two, rows are as Postgres has them: without a NUL, and with touched
blocks as a text.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg

from antiphon_kernel.storage.auth import AUTH_FILE
from antiphon_kernel.storage.backup import JOURNAL_FILE
from antiphon_kernel.storage.open_files import make_private
from antiphon_kernel.storage.postgres import STORED_NUL
from antiphon_kernel.storage.schema import AUTH_SCHEMA, JOURNAL_SCHEMA, Schema
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

Row = tuple[Any, ...]

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


@contextmanager
def open_files(folder: Path, *, made: bool = False) -> Iterator[FileTables]:
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

    def rows(self, table: str) -> Iterator[Row]:
        """Return every row of a table, in any order."""
        columns = ", ".join(tables()[table]).replace('"blocks"', "CAST(blocks AS TEXT)")
        return self._connection.execute(f"SELECT {columns} FROM {table}")

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows into a table that has none of them."""
        columns = tables()[table]
        values = ", ".join(
            f"iif(?{at} GLOB '*[^0-9]*' OR ?{at} = '', ?{at}, CAST(?{at} AS INTEGER))"
            if column == '"blocks"'
            else f"?{at}"
            for at, column in enumerate(columns, 1)
        )
        self._connection.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})",
            (
                [one.replace(STORED_NUL, "\0") if isinstance(one, str) else one for one in row]
                for row in rows
            ),
        )


class DatabaseTables:
    """The same tables of a database of Postgres, in a transaction of the connection."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, table: str) -> Iterator[Row]:
        where = " WHERE key <> 'cluster_secret'" if table == "journal.kernel" else ""
        with self._connection.cursor("rows") as cursor:
            cursor.itersize = 1_000
            query = f"SELECT {', '.join(tables()[table])} FROM {table}{where}"
            yield from cursor.execute(query, binary=True)

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows into an empty table; numbers that are drawn later follow theirs."""
        columns = tables()[table]
        stored = "journal.stored_ops" if table == "journal.ops" else table  # `ops` is a view
        query = f"COPY {stored} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            for row in rows:
                copy.write_row(row)
        if columns[0] == '"number"':
            drawn = f"pg_get_serial_sequence('{table}', 'number')"
            if table == "journal.contexts":
                drawn = "'journal.context_numbers'"
            query = f"SELECT setval({drawn}, max(number)) FROM {table} HAVING max(number) > 0"
            self._connection.execute(query)


def copy_rows(source: FileTables | DatabaseTables, target: FileTables | DatabaseTables) -> int:
    """Copy every table, and compare what is there then; the number of rows.

    Raises:
        AntiphonError: storage_failed if something has not arrived as it was.
    """
    copied = 0
    for table in tables():
        sent, found = Counter[str](), Counter[str]()
        target.add(table, _counted(source.rows(table), sent))
        for _ in _counted(target.rows(table), found):
            copied += 1
        if sent != found:
            raise AntiphonError(
                ErrorCode.STORAGE_FAILED,
                f"{table} has not arrived as it was: rows hold something else, or are missing."
                " Nothing was kept of the copy; `antiphon doctor` says whether the source is"
                " sound.",
            )
    return copied


def _counted(rows: Iterable[Row], sums: Counter[str]) -> Iterator[Row]:
    """Pass rows on, and add up how many there are and their digests."""
    for row in rows:
        sums["rows"] += 1
        sums["digests"] += int.from_bytes(hashlib.sha256(repr(row).encode()).digest())
        yield row
