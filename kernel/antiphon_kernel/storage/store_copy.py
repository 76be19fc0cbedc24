"""Every row of one store copied into another: files of SQLite, or a database of Postgres.

Both ends are read and written with the same names: a file is attached to SQLite under the name of
its schema in Postgres. The tables are those of the files; what only a database has (leases, owners)
stays where it is.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg

from antiphon_kernel.storage.auth import AUTH_FILE
from antiphon_kernel.storage.backup import JOURNAL_FILE
from antiphon_kernel.storage.commit_rows import SEQ_BITS
from antiphon_kernel.storage.open_files import make_private
from antiphon_kernel.storage.postgres import STORED_NUL
from antiphon_kernel.storage.schema import AUTH_SCHEMA, JOURNAL_SCHEMA, Schema
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

Row = tuple[Any, ...]

Progress = Callable[[str, int], None]
"""Is told a table and how many of its rows have been copied."""

JOURNAL: Final = "journal"
AUTH: Final = "auth"
PARTS: Final = (JOURNAL, AUTH)

_FILES: Final = {JOURNAL: (JOURNAL_FILE, JOURNAL_SCHEMA), AUTH: (AUTH_FILE, AUTH_SCHEMA)}

_OPS: Final = "ops"

_TOLD: Final = 10_000
"""Rows between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the files, with the columns that hold something of their own."""

    part: str
    name: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.part}.{self.name}"

    @property
    def listed(self) -> str:
        """The columns, as SQL lists them."""
        return ", ".join(f'"{one}"' for one in self.columns)


@cache
def tables(part: str) -> tuple[Table, ...]:
    """Return the tables of a part in the order of their making: what is referred to comes first."""
    with closing(sqlite3.connect(":memory:")) as database:
        _make_tables(database, _FILES[part][1])
        sql = (
            "SELECT t.name, t.type FROM sqlite_schema s JOIN pragma_table_list t"
            " ON t.name = s.name AND t.schema = 'main' WHERE t.type IN ('table', 'virtual')"
            " AND t.name NOT LIKE 'sqlite_%' ORDER BY s.rowid"
        )
        made = []
        for name, kind in database.execute(sql).fetchall():
            columns = [one[1] for one in database.execute(f"PRAGMA table_info({name})")]
            made.append(Table(part, name, (*(["rowid"] if kind == "virtual" else []), *columns)))
    return tuple(made)


class Store(Protocol):
    """One end of a copy, in one transaction."""

    def fitted(self, table: Table, row: Row) -> Row:
        """Return a row as this end can hold it."""

    def rows(self, table: Table) -> Iterator[Row]:
        """Return every row of a table, in any order."""

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        """Write rows into a table that has none of them."""


class FileStore:
    """The files of a data folder."""

    def __init__(self, folder: Path, parts: Iterable[str], *, made: bool = False) -> None:
        """Open the files, or make them.

        Raises:
            sqlite3.Error: if one cannot be opened.
        """
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for part in parts:
            name, schema = _FILES[part]
            if made:
                make_private(folder / name)
                with closing(sqlite3.connect(folder / name)) as database:
                    _make_tables(database, schema)
            self._connection.execute(f"ATTACH ? AS {part}", (str(folder / name),))
        self._connection.execute("BEGIN")

    def fitted(self, table: Table, row: Row) -> Row:
        return row

    def rows(self, table: Table) -> Iterator[Row]:
        return self._connection.execute(f"SELECT {table.listed} FROM {table}")

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        values = ", ".join("?" * len(table.columns))
        sql = f"INSERT INTO {table} ({table.listed}) VALUES ({values})"
        self._connection.executemany(sql, rows)

    def __enter__(self) -> FileStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Keep what was written, unless something failed."""
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            self._connection.close()


class DatabaseStore:
    """A database of Postgres, in a transaction of the connection."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def fitted(self, table: Table, row: Row) -> Row:
        return _from_database(table, _for_database(table, row))

    def rows(self, table: Table) -> Iterator[Row]:
        where = " WHERE key <> 'cluster_secret'" if table.name == "kernel" else ""
        query = f"COPY (SELECT {table.listed} FROM {_stored(table)}{where}) TO STDOUT"
        types = self._types(table)
        with self._connection.cursor() as cursor, cursor.copy(f"{query} (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in copy.rows():
                yield _from_database(table, row)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        query = f"COPY {_stored(table)} ({table.listed}) FROM STDIN (FORMAT BINARY)"
        types = self._types(table)
        with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(_for_database(table, row))

    def continue_numbers(self) -> None:
        """Have numbers that are drawn from now on follow those that are there."""
        for table in (table for part in PARTS for table in tables(part)):
            if table.columns[0] != "number":
                continue
            if table.name == "contexts":
                sequence = f"'{JOURNAL}.context_numbers'"
            else:
                sequence = f"pg_get_serial_sequence('{table}', 'number')"
            query = f"SELECT setval({sequence}, max(number)) FROM {table} HAVING max(number) > 0"
            self._connection.execute(query)

    def _types(self, table: Table) -> list[int]:
        cursor = self._connection.execute(f"SELECT {table.listed} FROM {_stored(table)} LIMIT 0")
        return [one.type_code for one in cursor.description or ()]


def _stored(table: Table) -> str:
    """Return what holds the rows of a table in Postgres; `ops` is a view there."""
    return f"{table.part}.stored_ops" if table.name == _OPS else str(table)


def _for_database(table: Table, row: Row) -> Row:
    """Return a row of a file as it stands in Postgres, where touched blocks are a text."""
    row = _with(STORED_NUL, "\0", row)
    is_number = table.name == _OPS and isinstance(row[-2], int)
    return (*row[:-2], str(row[-2]), row[-1]) if is_number else row


def _from_database(table: Table, row: Row) -> Row:
    """Return a row of Postgres as it stands in a file."""
    row = _with("\0", STORED_NUL, row)
    is_number = table.name == _OPS and row[-2].isdecimal()
    return (*row[:-2], int(row[-2]), row[-1]) if is_number else row


def _with(character: str, other: str, row: Row) -> Row:
    """Return a row with a character in the place of another one in its texts."""
    for value in row:  # nearly no row has one, and there are many rows
        if isinstance(value, str) and other in value:
            return tuple(
                one.replace(other, character) if isinstance(one, str) else one for one in row
            )
    return row


def copy_rows(source: Store, target: Store, parts: Iterable[str], told: Progress) -> int:
    """Copy every table of some parts, and compare what is there then; the number of rows.

    Raises:
        AntiphonError: storage_failed if something has not arrived as it was.
    """
    copied = 0
    for table in (table for part in parts for table in tables(part)):
        sent = _Sums(table)
        rows = (target.fitted(table, row) for row in source.rows(table))
        target.add(table, _watched(rows, table, sent, told))
        found = _Sums(table)
        for row in target.rows(table):
            found.add(row)
        if (different := sent.difference(found)) is not None:
            raise AntiphonError(
                ErrorCode.STORAGE_FAILED,
                f"{table} has not arrived as it was: {different}. Nothing was kept of the copy;"
                " `antiphon doctor` says whether the source is sound.",
            )
        copied += sent.count
    return copied


def _watched(rows: Iterable[Row], table: Table, sums: _Sums, told: Progress) -> Iterator[Row]:
    for row in rows:
        sums.add(row)
        if sums.count % _TOLD == 0:
            told(str(table), sums.count)
        yield row
    told(str(table), sums.count)


class _Sums:
    """How many rows a table has, and a sum of their digests, of transactions for each context."""

    def __init__(self, table: Table) -> None:
        self.count = 0
        self._is_of_contexts = str(table) == f"{JOURNAL}.ops"
        self._digests: Counter[int] = Counter()

    def add(self, row: Row) -> None:
        self.count += 1
        digest = hashlib.sha256(repr(row).encode()).digest()
        context = row[0] >> SEQ_BITS if self._is_of_contexts else 0
        self._digests[context] += int.from_bytes(digest)

    def difference(self, found: _Sums) -> str | None:
        """Return what another one has instead; None if both are of the same rows."""
        if self.count != found.count:
            return f"{self.count} rows were sent, {found.count} are there"
        for context in self._digests.keys() | found._digests.keys():
            if self._digests[context] != found._digests[context]:
                where = f" of context {context}" if self._is_of_contexts else ""
                return f"rows{where} hold something else"
        return None


def _make_tables(database: sqlite3.Connection, schema: Schema) -> None:
    for number, sql in schema.steps(0):
        database.executescript(f"{sql} PRAGMA user_version = {number};")
