"""The journal of one kernel: one writer, commits in groups, acknowledged when on disk.

The database runs in WAL mode with ``synchronous=FULL``: a commit is on disk when SQLite says so.
The writer commits as soon as it is idle; whatever is handed in meanwhile shares the next commit.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import aiosqlite

from antiphon_kernel.journal.rows import (
    BlockRow,
    Commit,
    ContextRow,
    StoredContext,
    StoredOp,
    UndoRow,
)
from antiphon_kernel.journal.schema import MIGRATIONS, RECORD_FORMAT
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.records import Principal
from antiphon_kernel.wire.id_set import decode_id_set, encode_id_set

_log = logging.getLogger(__name__)


class Journal:
    """An open database. `commit` may be called from one event loop only."""

    def __init__(self, path: Path, database: aiosqlite.Connection) -> None:
        self.path = path
        self._database = database
        self._waiting: list[tuple[Commit, asyncio.Future[None]]] = []
        self._stopped: dict[int, AntiphonError] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sessions: dict[str, int] = {}
        self._new_sessions: list[tuple[object, ...]] = []
        self._principals: dict[str, int] = {}
        self._broken: AntiphonError | None = None
        self._lock = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path) -> Journal:
        """Open or create the database at `path` and bring it to the current version.

        Raises:
            AntiphonError: storage_failed if the file cannot be opened, is damaged, or was written
                by a newer version.
        """
        try:
            database = await aiosqlite.connect(path, isolation_level=None)
            await database.execute("PRAGMA journal_mode = WAL")
            await database.execute("PRAGMA synchronous = FULL")
            await database.execute("PRAGMA foreign_keys = ON")
            journal = cls(path, database)
            await journal._migrate()
            await journal._load_numbers()
        except sqlite3.Error as error:
            raise _failed(path, error) from error
        journal._writer = asyncio.create_task(journal._write_forever(), name="journal writer")
        journal._writer.add_done_callback(journal._writer_ended)
        return journal

    async def close(self) -> None:
        """Write what is waiting, checkpoint, and close the file."""
        await self._idle.wait()
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        await self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await self._database.close()

    # Kernel, principals, sessions, contexts: small and rare, each its own transaction

    async def setting(self, key: str) -> str | None:
        """A fact about the kernel itself."""
        async with self._database.execute("SELECT value FROM kernel WHERE key = ?", (key,)) as rows:
            row = await rows.fetchone()
        return str(row[0]) if row else None

    async def set_setting(self, key: str, value: str) -> None:
        await self._run("INSERT OR REPLACE INTO kernel VALUES (?, ?)", (key, value))

    async def principals(self) -> list[Principal]:
        """Everybody this kernel knows."""
        async with self._database.execute("SELECT id, username, kind FROM principals") as rows:
            return [
                Principal(PrincipalId(row[0]), row[1], PrincipalKind(row[2]))
                for row in await rows.fetchall()
            ]

    async def add_principal(self, principal: Principal, created: int) -> None:
        number = await self._run(
            "INSERT INTO principals (id, username, kind, created) VALUES (?, ?, ?, ?)",
            (principal.id, principal.username, principal.kind, created),
        )
        self._principals[principal.id] = number

    def add_session(self, session: str, principal: Principal, via: str, opened: int) -> None:
        """Name a session; its row is written with the next commit."""
        number = len(self._sessions) + 1
        self._sessions[session] = number
        row = (number, session, self._principals[principal.id], via, opened)
        self._new_sessions.append(row)

    async def contexts(self) -> list[ContextRow]:
        """Every context, oldest first."""
        sql = "SELECT number, id, label, epoch, created FROM contexts ORDER BY number"
        async with self._database.execute(sql) as rows:
            return [
                ContextRow(row[0], ContextId(row[1]), row[2], row[3], row[4])
                for row in await rows.fetchall()
            ]

    async def add_context(
        self, context: ContextId, label: str, epoch: str, created: int
    ) -> ContextRow:
        number = await self._run(
            "INSERT INTO contexts (id, label, epoch, created) VALUES (?, ?, ?, ?)",
            (context, label, epoch, created),
        )
        return ContextRow(number, context, label, epoch, created)

    async def load(self, context: ContextRow) -> StoredContext:
        """Everything that belongs to one context."""
        self._stopped.pop(context.number, None)
        number = (context.number,)
        sql = "SELECT seq, changes FROM ops WHERE context = ? ORDER BY seq"
        async with self._database.execute(sql, number) as rows:
            ops = list(await rows.fetchall())
        sql = "SELECT number, id, version FROM blocks WHERE context = ? ORDER BY number"
        async with self._database.execute(sql, number) as rows:
            blocks = tuple(BlockRow(*row) for row in await rows.fetchall())
        sql = (
            "SELECT c.client, p.id FROM clients c JOIN principals p ON p.number = c.principal"
            " WHERE c.context = ?"
        )
        async with self._database.execute(sql, number) as rows:
            clients = {int(row[0]): str(row[1]) for row in await rows.fetchall()}
        return StoredContext(
            context,
            ops[-1][0] if ops else 0,
            tuple(bytes(row[1]) for row in ops),
            blocks,
            await self._load_undo(context),
            clients,
        )

    async def ops(self, context: ContextRow, after: int, limit: int) -> list[StoredOp]:
        """The first `limit` committed transactions with a higher `seq` than `after`."""
        sql = (
            "SELECT o.seq, o.time, p.id, o.operation, o.touched, o.changes FROM ops o"
            " JOIN principals p ON p.number = o.principal"
            " WHERE o.context = ? AND o.seq > ? ORDER BY o.seq LIMIT ?"
        )
        async with self._database.execute(sql, (context.number, after, limit)) as rows:
            return [
                StoredOp(row[0], row[1], row[2], row[3], _versions(row[4]), bytes(row[5]))
                for row in await rows.fetchall()
            ]

    async def _load_undo(self, context: ContextRow) -> tuple[UndoRow, ...]:
        sql = (
            "SELECT u.number, p.id, s.id, u.kind, u.stack, u.time, u.blocks, u.inserted, u.deleted"
            " FROM undo u JOIN principals p ON p.number = u.principal"
            " JOIN sessions s ON s.number = u.session WHERE u.context = ? ORDER BY u.number"
        )
        async with self._database.execute(sql, (context.number,)) as rows:
            return tuple(
                UndoRow(
                    number=row[0],
                    principal=row[1],
                    session=row[2],
                    kind=row[3],
                    stack=row[4],
                    time=row[5],
                    blocks=tuple(row[6].split()),
                    inserted=decode_id_set(row[7]),
                    deleted=decode_id_set(row[8]),
                )
                for row in await rows.fetchall()
            )

    # Commits

    def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Store one transaction; the future is done when it is on disk.

        Futures are done in the order of the calls. After a failure (storage_failed) everything
        that was built on the lost commit fails too, until the context is loaded again.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._broken is not None:
            future.set_exception(self._broken)
            return future
        self._waiting.append((commit, future))
        self._idle.clear()
        self._wake.set()
        return future

    async def _write_forever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            group = list(self._waiting)
            sound = [one for one, _ in group if one.context.number not in self._stopped]
            error = await self._write_group(sound) if sound else None
            if error is not None:
                self._stopped.update({one.context.number: error for one in sound})
            for one, future in group:
                stopped = self._stopped.get(one.context.number)
                if future.cancelled():
                    continue
                if stopped is not None:
                    future.set_exception(stopped)
                else:
                    future.set_result(None)
            del self._waiting[: len(group)]
            if not self._waiting:
                self._idle.set()

    def _writer_ended(self, writer: asyncio.Task[None]) -> None:
        """A writer that dies of a bug must not leave anybody waiting."""
        if writer.cancelled():
            return
        self._broken = error = AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"The journal's writer has stopped: {writer.exception()}. Restart the kernel.",
        )
        _log.critical("the journal's writer has stopped", exc_info=writer.exception())
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
        self._idle.set()

    async def _write_group(self, group: list[Commit]) -> AntiphonError | None:
        """One SQLite transaction for all of them; the error if it did not happen."""
        database = self._database
        async with self._lock:
            new_sessions, self._new_sessions = self._new_sessions, []
            try:
                await database.execute("BEGIN IMMEDIATE")
                for sql, rows in self._statements(group, new_sessions):
                    if rows:
                        await database.executemany(sql, rows)
                await database.execute("COMMIT")
            except sqlite3.Error as error:
                self._new_sessions = new_sessions + self._new_sessions
                _log.error("a commit of %d transactions failed: %s", len(group), error)
                if database.in_transaction:
                    await database.execute("ROLLBACK")
                return _failed(self.path, error)
        return None

    def _statements(
        self, group: list[Commit], new_sessions: list[tuple[object, ...]]
    ) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
        """The rows of a group, table by table; of an undo row only its last state."""
        principals, sessions = self._principals, self._sessions
        ops: list[tuple[object, ...]] = []
        blocks: list[tuple[object, ...]] = []
        clients: list[tuple[object, ...]] = []
        undo: dict[tuple[int, int], tuple[object, ...] | None] = {}
        for one in group:
            context, principal = one.context.number, principals[one.principal.id]
            touched = " ".join(f"{block.number}:{block.version}" for block in one.blocks)
            ops.append(
                (
                    context,
                    one.seq,
                    RECORD_FORMAT,
                    one.time,
                    principal,
                    sessions[one.session],
                    one.operation,
                    one.unit,
                    touched,
                    one.update,
                )
            )
            blocks += [(context, block.number, block.id, block.version) for block in one.blocks]
            clients += [(context, client, principal) for client in one.clients]
            for row in one.undo:
                undo[context, row.number] = (
                    context,
                    row.number,
                    RECORD_FORMAT,
                    principals[row.principal],
                    sessions[row.session],
                    row.kind,
                    row.stack,
                    row.time,
                    " ".join(row.blocks),
                    encode_id_set(row.inserted),
                    encode_id_set(row.deleted),
                )
            undo.update(((context, number), None) for number in one.dropped_undo)
        yield "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", new_sessions
        yield "INSERT INTO ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ops
        upsert = (
            "INSERT INTO blocks VALUES (?, ?, ?, ?) ON CONFLICT (context, number)"
            " DO UPDATE SET version = excluded.version"
        )
        yield upsert, blocks
        yield "INSERT OR IGNORE INTO clients VALUES (?, ?, ?)", clients
        yield (
            "INSERT OR REPLACE INTO undo VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [row for row in undo.values() if row is not None],
        )
        yield (
            "DELETE FROM undo WHERE context = ? AND number = ?",
            [key for key, row in undo.items() if row is None],
        )

    # Opening

    async def _run(self, sql: str, values: tuple[object, ...]) -> int:
        """One statement in a transaction of its own; the row it made."""
        async with self._lock:
            try:
                cursor = await self._database.execute(sql, values)
            except sqlite3.Error as error:
                raise _failed(self.path, error) from error
            return cursor.lastrowid or 0

    async def _migrate(self) -> None:
        async with self._database.execute("PRAGMA user_version") as rows:
            row = await rows.fetchone()
        version = int(row[0]) if row else 0
        if version > len(MIGRATIONS):
            raise AntiphonError(
                ErrorCode.STORAGE_FAILED,
                f"{self.path} has version {version}, this antiphon knows {len(MIGRATIONS)}:"
                " use the antiphon that wrote it, or a newer one.",
                path=str(self.path),
            )
        for number in range(version, len(MIGRATIONS)):
            script = f"BEGIN IMMEDIATE; {MIGRATIONS[number]} PRAGMA user_version = {number + 1};"
            await self._database.executescript(script + " COMMIT;")

    async def _load_numbers(self) -> None:
        async with self._database.execute("SELECT id, number FROM principals") as rows:
            self._principals = {row[0]: row[1] for row in await rows.fetchall()}
        async with self._database.execute("SELECT id, number FROM sessions") as rows:
            self._sessions = {row[0]: row[1] for row in await rows.fetchall()}


def _versions(touched: str) -> dict[int, int]:
    pairs = (pair.split(":") for pair in touched.split())
    return {int(number): int(version) for number, version in pairs}


def _failed(path: Path, error: sqlite3.Error) -> AntiphonError:
    return AntiphonError(
        ErrorCode.STORAGE_FAILED,
        f"The journal {path} could not be used: {error}. Nothing was acknowledged;"
        " check the disk, then try again.",
        path=str(path),
    )
