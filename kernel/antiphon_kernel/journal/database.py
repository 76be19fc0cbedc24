"""The SQLite file: opened, migrated, read and written; every failure of it is `storage_failed`.

The database runs in WAL mode with ``synchronous=FULL``: a commit is on disk when SQLite says so.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import aiosqlite

from antiphon_kernel.journal.schema import MIGRATIONS
from antiphon_kernel.journal.transaction import Statement, carry_out
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, kernel_is_closing

_ROWS_AT_ONCE = 64
"""How many rows of an open cursor are fetched in one go."""


class _Connection(aiosqlite.Connection):
    """The library's connection, with a whole transaction in one trip to its thread.

    A trip costs as much as several statements, and each of them would take one.
    """

    async def transact(self, statements: Iterable[Statement]) -> None:
        await self._execute(  # type: ignore[no-untyped-call]
            carry_out, self._conn, statements
        )


class Database:
    """One open file; one transaction at a time."""

    def __init__(self, path: Path, connection: _Connection, migrations: Sequence[str]) -> None:
        self.path = path
        self._connection = connection
        self._migrations = migrations
        self._lock = asyncio.Lock()
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        migrations: Sequence[str] = MIGRATIONS,
        functions: Mapping[str, Callable[[str], str]] | None = None,
    ) -> Database:
        """Open or create the file and bring it to the current version.

        Args:
            migrations: SQL of each version, the first one for an empty file.
            functions: what the SQL may call by name, with one text.

        Raises:
            AntiphonError: storage_failed if it cannot be opened, is damaged, or was written by a
                newer version.
        """
        connect = partial(sqlite3.connect, path, isolation_level=None)
        connection = _Connection(connect, _ROWS_AT_ONCE)
        try:
            await connection
        except sqlite3.Error as error:
            raise _failed(path, error) from error
        database = cls(path, connection, migrations)
        try:
            for name, function in (functions or {}).items():
                await connection.create_function(name, 1, function)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                await database.select(f"PRAGMA {pragma}")
            await database._migrate()
        except BaseException:
            await connection.close()  # its thread would keep the process alive
            raise
        return database

    async def close(self) -> None:
        """Checkpoint and let go of the file."""
        try:
            await self.select("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._closed = True
            await self._connection.close()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise kernel_is_closing()

    async def select(self, sql: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Every row of a query."""
        self._refuse_if_closed()
        try:
            # In one step: a caller that is cancelled must not leave an open cursor behind.
            return list(await self._connection.execute_fetchall(sql, values))
        except sqlite3.Error as error:
            raise _failed(self.path, error) from error

    async def insert(self, sql: str, values: Sequence[object]) -> int:
        """One statement in a transaction of its own; the number of the row it made."""
        async with self._lock:
            self._refuse_if_closed()
            try:
                cursor = await self._connection.execute(sql, values)
            except sqlite3.Error as error:
                raise _failed(self.path, error) from error
            return cursor.lastrowid or 0

    async def write(self, statements: Iterable[Statement]) -> None:
        """All statements in one transaction, or none of them.

        Args:
            statements: if they are made one by one, they are made in the thread that writes: the
                rows of a large transaction keep nobody waiting and are not there all at once.
        """
        async with self._lock:
            self._refuse_if_closed()
            try:
                await self._connection.transact(statements)
            except sqlite3.Error as error:
                raise _failed(self.path, error) from error

    async def _migrate(self) -> None:
        version = int((await self.select("PRAGMA user_version"))[0][0])
        if version > len(self._migrations):
            raise AntiphonError(
                ErrorCode.STORAGE_FAILED,
                f"{self.path} has version {version}, this antiphon knows {len(self._migrations)}:"
                " use the antiphon that wrote it, or a newer one.",
                path=str(self.path),
            )
        for number in range(version, len(self._migrations)):
            script = (
                f"BEGIN IMMEDIATE; {self._migrations[number]} PRAGMA user_version = {number + 1};"
            )
            try:
                await self._connection.executescript(script + " COMMIT;")
            except sqlite3.Error as error:
                raise _failed(self.path, error) from error


def _failed(path: Path, error: sqlite3.Error) -> AntiphonError:
    return AntiphonError(
        ErrorCode.STORAGE_FAILED,
        f"The journal {path} could not be used: {error}. Nothing was acknowledged;"
        " check the disk, then try again.",
        path=str(path),
    )
