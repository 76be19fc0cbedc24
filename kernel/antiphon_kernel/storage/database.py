"""The SQLite file: opened, migrated, read and written; every failure of it is `storage_failed`.

The database runs in WAL mode with ``synchronous=FULL``: a commit is on disk when SQLite says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import aiosqlite

from antiphon_kernel.storage.backup import write_copy
from antiphon_kernel.storage.open_files import OpenFiles, StorageLostError, make_private
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA, Schema
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, kernel_is_closing, storage_failed
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.signal import Signal

Row = tuple[object, ...]

Statement = tuple[str, Sequence[Row]]
"""SQL, and the rows it is carried out for."""


class FenceError(AntiphonError):
    """A transaction that `check_commit` has refused; nothing of it has happened."""

    def __init__(self, contexts: Collection[int], principals: Collection[str]) -> None:
        super().__init__(
            ErrorCode.NOT_OWNER,
            "Another kernel has the context, or the writer's rights have changed."
            " Nothing was acknowledged: call again.",
        )
        self.contexts = frozenset(contexts)
        """Numbers of the roots that this kernel has no right to write to."""
        self.principals = frozenset(principals)
        """Ids of those whose rights have changed since they were read."""


class TakenError(AntiphonError):
    """A transaction that gives a name which another kernel gave; nothing of it has happened."""

    def __init__(self, name: str) -> None:
        super().__init__(
            ErrorCode.INVALID_PARAMS,
            f"Another kernel has just given the name {quote(name)}: give another one.",
            found=truncate(name),
        )
        self.name = name


def execute(
    connection: sqlite3.Connection, statements: Iterable[Statement], files: OpenFiles
) -> None:
    """All statements in one transaction, or none of them; those without rows are left out.

    Raises:
        sqlite3.Error: nothing of it has happened, unless it was the commit that failed.
        StorageLostError: what is committed is not in the file at its path.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        for sql, rows in statements:
            if rows:
                connection.executemany(sql, rows)
        files.check_before_commit()
        connection.execute("COMMIT")
        files.check_after_commit()
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            files.check_after_commit()  # a file that was cut gives errors that do not say so
        raise


_log = logging.getLogger(__name__)

_CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"

_ROWS_AT_ONCE = 64
"""How many rows of an open cursor are fetched in one go."""


class _DatabaseConnection(aiosqlite.Connection):
    """The library's connection, with a whole transaction in one trip to its thread.

    A trip costs as much as several statements, and each of them would take one.
    """

    async def run(self, function: Callable[..., object], *values: object) -> None:
        """Call `function` in the library's thread."""
        await self._execute(function, *values)  # type: ignore[no-untyped-call]

    async def use(self, function: Callable[..., object], *values: object) -> None:
        """Call `function` with SQLite's connection in front of the values, in that thread."""
        await self.run(function, self._conn, *values)


class Database:
    """One open file; one transaction at a time."""

    is_shared = False
    """Whether other kernels read and write too."""

    def __init__(
        self,
        path: Path,
        connection: _DatabaseConnection,
        schema: Schema,
        spare: Path | None = None,
    ) -> None:
        self.path = path
        self._spare = spare
        self._connection = connection
        self._schema = schema
        self._lock = asyncio.Lock()
        self._files: OpenFiles | None = None
        self.files_lost = Signal[StorageLostError]()
        """Notified once, when the files are found deleted or replaced."""
        self._closed = False
        self.lost: StorageLostError | None = None
        """Why nothing can be written any more; reading may go on."""

    @classmethod
    async def open(
        cls,
        path: Path,
        schema: Schema = JOURNAL_SCHEMA,
        spare: Path | None = None,
    ) -> Database:
        """Open or create the file, for this user alone; see `open_tables`."""
        connection = _DatabaseConnection(partial(_connect, path), _ROWS_AT_ONCE)
        database = cls(path, connection, schema, spare)
        try:
            make_private(path)
            await connection
            await database._migrate()
            database._files = OpenFiles(path)
        except BaseException as error:
            await connection.close()  # its thread would keep the process alive
            if isinstance(error, sqlite3.Error | OSError):
                raise _failed(path, error) from error
            raise
        return database

    async def close(self) -> None:
        """Checkpoint and let go of the file."""
        try:
            with suppress(StorageLostError):  # `files_lost` tells everybody who has to know
                # A write between the checkpoint and the end would take it for a stranger's.
                async with self._writing() as files:
                    await self._connection.run(files.check_before_commit)
                    self._closed = True
                    await self._connection.execute_fetchall(_CHECKPOINT)
        finally:
            self._closed = True
            await self._connection.close()
            if self._files is not None:
                self._files.close()

    async def select(self, sql: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Every row of a query; what has been lost can be read as far as SQLite still has it."""
        if self._closed:
            raise kernel_is_closing()
        try:
            # In one step: a caller that is cancelled must not leave an open cursor behind.
            plain = [json.dumps(one) if isinstance(one, list) else one for one in values]
            return list(await self._connection.execute_fetchall(sql, plain))
        except sqlite3.Error as error:
            raise self.lost or _failed(self.path, error) from error

    async def insert(self, sql: str, values: Sequence[object]) -> int:
        """One statement in a transaction of its own; the number of the row it made."""
        async with self._writing() as files:
            await self._connection.run(files.check_before_commit)
            cursor = await self._connection.execute(sql, values)
            await self._connection.run(files.check_after_commit)
        return cursor.lastrowid or 0

    async def write(self, statements: Iterable[Statement]) -> None:
        """All statements in one transaction, or none of them.

        If they are made one by one, they are made in the thread that writes: the rows of a large
        transaction keep nobody waiting and are not there all at once.
        """
        async with self._writing() as files:
            await self._connection.use(execute, statements, files)

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        """Do something as it is: the file has one writer."""
        yield

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[OpenFiles]:
        """Be the only writer for now; gives the files, which belong to the library's thread.

        Files that are found lost are salvaged, and told of once.
        """
        async with self._lock:
            if self._closed:
                raise kernel_is_closing()
            if self.lost is not None:
                raise self.lost
            assert self._files is not None
            try:
                yield self._files
            except sqlite3.Error as error:
                raise _failed(self.path, error) from error
            except StorageLostError as error:
                self.lost = await self._salvage(error)
                self.files_lost.notify(self.lost)
                raise self.lost from error

    async def _salvage(self, error: StorageLostError) -> StorageLostError:
        """Save what SQLite still holds of lost files; the error, with where that is now."""
        if error.damaged:
            return error
        try:
            if self._spare is not None:
                self._spare.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                await self._connection.use(write_copy, self.path, self._spare)
                error = StorageLostError(error.path, error.what, self._spare)
            # A log that has been deleted ends with the process, and one that is still there must
            # not be applied to another file.
            await self.select(_CHECKPOINT)
        except (AntiphonError, OSError) as failure:
            _log.error("what was in %s could not be saved elsewhere: %s", self.path, failure)
        return error

    async def _migrate(self) -> None:
        version = int((await self.select("PRAGMA user_version"))[0][0])
        refusal = self._schema.refusal(version)
        if refusal is not None:
            raise storage_failed(f"{self.path} {refusal}.", path=str(self.path))
        for number, sql in self._schema.steps(version):
            script = f"BEGIN IMMEDIATE; {sql} PRAGMA user_version = {number};"
            try:
                await self._connection.executescript(script + " COMMIT;")
            except sqlite3.Error as error:
                raise _failed(self.path, error) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _failed(path: Path, error: sqlite3.Error | OSError) -> AntiphonError:
    return storage_failed(
        f"The journal {path} could not be used: {error}. Nothing was acknowledged;"
        " check the disk, then try again.",
        path=str(path),
    )
