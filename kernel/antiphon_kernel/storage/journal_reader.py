"""Reading a journal: who is there, and all that is stored of each context."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import fields, replace
from sys import intern
from typing import Final

from antiphon_kernel.storage.commit_rows import LAST_SEQ, op_id
from antiphon_kernel.storage.rows import (
    Blob,
    BlockRow,
    ChangeRow,
    ContextRow,
    DriftRow,
    FileRow,
    ForkOrigin,
    InheritedText,
    SessionRow,
    StoredOp,
    UndoRow,
)
from antiphon_kernel.storage.schema import READABLE_FORMATS
from antiphon_kernel.storage.stores import SqlDatabase
from antiphon_kernel.types.enums import ContextKind, DriftKind, DriftState, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, storage_failed
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.records import Principal, Run, Stamp
from antiphon_kernel.types.replay import ReplayPresence
from antiphon_kernel.yjs.restored_ids import decode_restored


class CorruptContextError(AntiphonError):
    """The records of one context cannot be read; the other contexts are not concerned."""

    def __init__(self, context: ContextRow, what: str, seq: int | None = None) -> None:
        where = f" at seq {seq}" if seq is not None else ""
        super().__init__(
            ErrorCode.STORAGE_FAILED,
            f"The context {context.label!r} is damaged{where}: {what}. Nothing of it was changed;"
            " `antiphon doctor` says more, `antiphon restore` brings back a backup.",
            context=context.id,
            label=context.label,
            quarantined=True,
            **({} if seq is None else {"seq": seq}),
        )
        self.what = what
        self.seq = seq


BYTES_ONLY: Final = "CASE typeof(changes) WHEN 'blob' THEN changes END"
"""The changes of a transaction; NULL if they are no bytes, which may not even be readable."""


class JournalReader:
    """Reader of a journal: who is there, and the transactions of each context without a hole.

    Every method raises AntiphonError storage_failed if the file cannot be read; what reads a
    context raises CorruptContextError if a record cannot be read, or one is missing.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._principals: dict[str, int] = {}
        """The number of each principal in other rows, by id."""

    async def settings(self, prefix: str = "") -> dict[str, str]:
        """Return the facts about the kernel whose keys begin so, by key."""
        sql = "SELECT key, value FROM kernel WHERE substr(key, 1, ?) = ? ORDER BY key"
        rows = await self._database.select(sql, (len(prefix), prefix))
        return {str(key): str(value) for key, value in rows}

    async def principals(self) -> list[Principal]:
        """Everybody this kernel knows, from now on by their numbers too."""
        sql = "SELECT number, id, username, kind, display_name FROM principals ORDER BY number"
        rows = await self._database.select(sql)
        self._principals |= {row[1]: row[0] for row in rows}
        return [
            Principal(PrincipalId(principal), username, _kind(kind), display_name)
            for _, principal, username, kind, display_name in rows
        ]

    async def sessions(self) -> list[SessionRow]:
        """Everybody who ever joined or committed, in the order in which they were recorded."""
        sql = (
            "SELECT s.id, p.id, s.via, s.opened FROM sessions s"
            " JOIN principals p ON p.number = s.principal ORDER BY s.number"
        )
        return [SessionRow(*row) for row in await self._database.select(sql)]

    async def contexts(self) -> list[ContextRow]:
        """Every context, oldest first."""
        sql = (
            "SELECT c.number, c.id, label, epoch, c.created, archived, c.kind, p.id, source,"
            " source_seq, copied FROM contexts c LEFT JOIN principals p ON p.number = c.creator"
            " ORDER BY c.number"
        )
        found: list[ContextRow] = []
        for row in await self._database.select(sql):
            number, context, label, epoch, created, archived, kind, creator, *fork = row
            origin = ForkOrigin(*fork) if fork[0] is not None else None
            about = ContextId(context), label, epoch, created, archived, origin, creator
            found.append(ContextRow(number, *about, ContextKind(kind)))
        return found

    async def files(self) -> list[FileRow]:
        """Return the files of the project that are contexts."""
        sql = f"SELECT {', '.join(one.name for one in fields(FileRow))} FROM files"
        return [FileRow(*row) for row in await self._database.select(sql)]

    async def drifts(self) -> list[DriftRow]:
        """Return every drift, oldest first."""
        sql = (
            "SELECT d.id, d.kind, source, version, target, p.id, time, state, seq, block, request,"
            " outcome FROM drifts d JOIN principals p ON p.number = d.principal ORDER BY time, d.id"
        )
        rows = [DriftRow(*row) for row in await self._database.select(sql)]
        return [replace(row, kind=DriftKind(row.kind), state=DriftState(row.state)) for row in rows]

    async def agent_session(self, context: ContextRow, agent: str) -> tuple[str, int] | None:
        """Return the session that an agent has in a context, and the version that it has read."""
        sql = "SELECT session, seq FROM agent_sessions WHERE context = ? AND agent = ?"
        rows = await self._database.select(sql, (context.number, agent))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    async def source(self, origin: ForkOrigin) -> ContextRow:
        """The context that a fork was made of."""
        return next(one for one in await self.contexts() if one.number == origin.source)

    async def blocks(self, context: ContextRow, omitted: int = 0) -> tuple[BlockRow, ...]:
        """Return the rows of the blocks of a context with numbers behind `omitted`, in order."""
        sql = (
            "SELECT number, id, version FROM blocks WHERE context = ? AND number > ?"
            " ORDER BY number"
        )
        rows = await self._database.select(sql, (context.number, omitted))
        # One string for all who keep the id of a block: each takes 120 bytes.
        return tuple(BlockRow(number, intern(str(one)), version) for number, one, version in rows)

    async def block_numbers(
        self, context: ContextRow, blocks: Collection[str] | None = None
    ) -> dict[str, int]:
        """Return the number of each block of a context, or of those with these ids, by id."""
        if blocks is None:
            return {row.id: row.number for row in await self.blocks(context)}
        sql = (
            "SELECT id, number FROM blocks WHERE context = ?"
            " AND id IN (SELECT value FROM json_each(?))"
        )
        rows = await self._database.select(sql, (context.number, [*blocks]))
        return {str(block): int(number) for block, number in rows}

    async def blob(self, hash_: str) -> bytes | None:
        """The bytes with this SHA-256; None if there are none, or they are not those any more."""
        rows = await self._database.select("SELECT data FROM blobs WHERE hash = ?", (hash_,))
        data = rows[0][0] if rows else None
        is_sound = isinstance(data, bytes) and Blob.of(data).hash == hash_
        return data if is_sound else None

    async def clients(self, context: ContextRow) -> dict[int, str]:
        """CRDT client id to the principal that writes with it."""
        sql = (
            "SELECT c.client, p.id FROM clients c JOIN principals p ON p.number = c.principal"
            " WHERE c.context = ?"
        )
        rows = await self._database.select(sql, (context.number,))
        return {int(row[0]): str(row[1]) for row in rows}

    async def check_sequence(self, context: ContextRow) -> int:
        """See that every transaction of a context is there; the number of the last."""
        sql = (
            "SELECT count(*), coalesce(max(seq), 0), min(seq), min(format), max(format) FROM ops"
            " WHERE id BETWEEN ? AND ?"
        )
        everything = op_id(context.number, 0), op_id(context.number, LAST_SEQ)
        rows = await self._database.select(sql, everything)
        count, last, first, *formats = rows[0]
        if not count:
            raise CorruptContextError(context, "it has no transactions", 1)
        if first != 1 or count != last:
            sql = (
                "SELECT min(seq) + 1 FROM ops o WHERE id BETWEEN ? AND ? AND NOT EXISTS"
                " (SELECT 1 FROM ops n WHERE n.id = o.id + 1)"
            )
            hole = 1 if first != 1 else (await self._database.select(sql, everything))[0][0]
            raise CorruptContextError(context, f"transaction {hole} is missing", hole)
        if not READABLE_FORMATS.issuperset(formats):
            await self.updates(context, 0)
        return int(last)

    async def updates(self, context: ContextRow, after: int) -> list[bytes]:
        """The bytes of every transaction behind `after`; the first has `seq` after + 1."""
        sql = f"SELECT seq, format, {BYTES_ONLY} FROM ops WHERE id BETWEEN ? AND ? ORDER BY id"
        behind = op_id(context.number, after + 1), op_id(context.number, LAST_SEQ)
        found: list[bytes] = []
        for seq, format_, changes in await self._database.select(sql, behind):
            expected = after + len(found) + 1
            if seq != expected:
                raise CorruptContextError(context, f"transaction {expected} is missing", expected)
            if format_ not in READABLE_FORMATS:
                raise CorruptContextError(
                    context,
                    f"its record has the format {format_!r}, this antiphon reads"
                    f" {', '.join(map(str, sorted(READABLE_FORMATS)))}",
                    seq,
                )
            if not isinstance(changes, bytes):
                raise CorruptContextError(context, "its record holds no bytes", seq)
            found.append(changes)
        return found

    async def ops(
        self,
        context: ContextRow,
        *,
        after: int = 0,
        upto: int = LAST_SEQ,
        limit: int = -1,
        blocks: Collection[int] | None = None,
        seqs: Collection[int] | None = None,
    ) -> list[StoredOp]:
        """Committed transactions behind `after`, in order.

        Args:
            upto: the last `seq` wanted.
            limit: how many at most; -1 for all.
            blocks: numbers of the blocks one of which they must have touched; None for any.
            seqs: those that are wanted; None for all.
        """
        where = "o.id BETWEEN ? AND ?"
        values: list[object] = [op_id(context.number, after + 1), op_id(context.number, upto)]
        if blocks is not None:  # of what touched several, it is quicker to look at the versions
            where += (
                " AND (instr(o.blocks, ' ') OR"
                " CAST(o.touched AS INTEGER) IN (SELECT value FROM json_each(?)))"
            )
            values.append([*blocks])
        if seqs is not None:
            where += " AND o.id IN (SELECT value FROM json_each(?))"
            values.append([op_id(context.number, seq) for seq in seqs])
        sql = (
            "SELECT o.seq, o.time, p.id, o.operation, o.touched, o.changes, o.unit, r.revivals"
            " FROM ops o JOIN principals p ON p.number = o.principal"
            " LEFT JOIN revived r ON r.context = o.context AND r.seq = o.seq"
            f" WHERE {where} ORDER BY o.id LIMIT ?"
        )
        rows = await self._database.select(sql, (*values, limit))
        found, wanted = list[StoredOp](), None if blocks is None else {*map(str, blocks)}
        for seq, time, principal, operation, touched, changes, unit, revivals in rows:
            if wanted is not None and wanted.isdisjoint(touched.replace(":", " ").split()[::2]):
                continue
            try:
                revived = decode_restored(revivals) if revivals is not None else ()
            except ValueError as error:
                raise _unreadable(context, seq, error) from error
            versions = _versions(context, seq, touched)
            about = seq, time, principal, operation, versions
            found.append(StoredOp(*about, bytes(changes), unit, revived))
        return found

    async def presences(
        self, context: ContextRow, after: int, upto: int
    ) -> dict[int, list[ReplayPresence]]:
        """Return where sessions were in the versions behind `after` up to `upto`, by version."""
        sql = (
            "SELECT seq, time, s.id, p.id, activity,"
            " (SELECT id FROM blocks b WHERE b.context = o.context AND b.number = o.block),"
            " cursor, anchor FROM presences o JOIN sessions s ON s.number = o.session"
            " JOIN principals p ON p.number = s.principal"
            " WHERE context = ? AND seq > ? AND seq <= ? ORDER BY seq, time, session"
        )
        names = ("at", "session", "by", "activity", "block", "cursor", "anchor")
        found: dict[int, list[ReplayPresence]] = {}
        for seq, *values in await self._database.select(sql, (context.number, after, upto)):
            place = ReplayPresence(**dict(zip(names, values, strict=True)))
            found.setdefault(seq, []).append(place)
        return found

    async def last_seq(self, context: ContextRow) -> int:
        """Return the number of a context's last transaction."""
        sql = "SELECT max(id) FROM ops WHERE id BETWEEN ? AND ?"
        everything = op_id(context.number, 0), op_id(context.number, LAST_SEQ)
        rows = await self._database.select(sql, everything)
        last = rows[0][0]
        return 0 if last is None else int(last) - everything[0]

    async def has_last_state(self, context: ContextRow) -> bool:
        """Return whether the state after a context's last transaction is stored."""
        tables, number = ("snapshots", "recent_states"), context.number
        states = " UNION ".join(f"SELECT seq FROM {one} WHERE context = ?1" for one in tables)
        return (await self.last_seq(context),) in await self._database.select(states, (number,))

    async def last_changes(self) -> dict[int, tuple[int, int]]:
        """Return number and time of the last transaction of each context that has one."""
        sql = (  # not a join, for which Postgres may read all transactions
            "SELECT number, last, (SELECT time FROM ops WHERE id = last) FROM (SELECT c.number,"
            " (SELECT max(id) FROM ops WHERE id BETWEEN c.number * ?1 AND c.number * ?1 + ?2)"
            " AS last FROM contexts c) AS found"
        )
        rows = await self._database.select(sql, (op_id(1, 0), LAST_SEQ))
        return {number: (last & LAST_SEQ, time) for number, last, time in rows if last is not None}

    async def changed_blocks(
        self,
        context: ContextRow,
        after: int,
        limit: int,
        *,
        but_by: str | None = None,
        but_as: Collection[str],
    ) -> set[int]:
        """Return the numbers of the blocks that the last transactions touched.

        Args:
            after: of a transaction; only later ones count.
            limit: how many of them count at most, the latest ones.
            but_by: id of a principal whose transactions do not count; None if all do.
            but_as: operations whose transactions do not count.
        """
        sql = (
            "SELECT seq, touched FROM ops WHERE id BETWEEN ? AND ?"
            " AND principal IS NOT (SELECT number FROM principals WHERE id = ?)"
            " AND operation NOT IN (SELECT value FROM json_each(?))"
            " ORDER BY id DESC LIMIT ?"
        )
        behind = op_id(context.number, after + 1), op_id(context.number, LAST_SEQ)
        rows = await self._database.select(sql, (*behind, but_by, [*but_as], limit))
        return {block for seq, touched in rows for block in _versions(context, seq, touched)}

    async def changes(
        self, context: ContextRow, after: int, *, limit: int = -1, block: int | None = None
    ) -> list[ChangeRow[int]]:
        """Return the first `limit` transactions behind `after`, in order, without their content.

        If `block`, the number of one, is given, those that touched it.
        """
        sql = (
            "SELECT o.seq, o.touched, o.time, p.id, o.operation, length(o.changes) FROM ops o"
            " JOIN principals p ON p.number = o.principal"
            " WHERE o.id BETWEEN ? AND ? AND instr(' ' || o.touched, ?) ORDER BY o.id LIMIT ?"
        )
        behind = op_id(context.number, after + 1), op_id(context.number, LAST_SEQ)
        wanted = f" {block}:" if block is not None else ""
        return [
            ChangeRow(seq, _versions(context, seq, touched), *rest)
            for seq, touched, *rest in await self._database.select(sql, (*behind, wanted, limit))
        ]

    async def undo(self, context: ContextRow) -> tuple[UndoRow, ...]:
        """Everything that can be undone or redone, each stack from the bottom up."""
        sql = (
            "SELECT u.unit, u.block, p.id, u.kind, u.stack, u.place, u.time, p.number"
            " FROM undo u JOIN principals p ON p.number = u.principal"
            " WHERE u.context = ? ORDER BY u.place, u.block"
        )
        rows = await self._database.select(sql, (context.number,))
        self._principals |= {row[2]: row[7] for row in rows}
        return tuple(UndoRow(*row[:7]) for row in rows)

    async def inherited(
        self, context: ContextRow, blocks: Collection[int] | None = None
    ) -> list[InheritedText]:
        """Authors of what was copied into a context, or into the blocks with these numbers."""
        sql = "SELECT block, section, version, format, runs FROM inherited_blame WHERE context = ?"
        values: list[object] = [context.number]
        if blocks is not None:
            sql += " AND block IN (SELECT value FROM json_each(?))"
            values.append([*blocks])
        found: list[InheritedText] = []
        for number, section, version, format_, runs in await self._database.select(sql, values):
            try:
                if format_ not in READABLE_FORMATS:
                    raise ValueError(f"it has the format {format_!r}")
                read = tuple(
                    Run(end - start, Stamp(*stamp)) for start, end, *stamp in json.loads(runs)
                )
            except (ValueError, TypeError) as error:
                what = f"the record of who wrote block {number} cannot be read ({error})"
                raise CorruptContextError(context, what) from error
            found.append(InheritedText(number, section or None, read, version))
        return found


def versions_of(touched: str) -> dict[int, int]:
    """Number of each touched block to its version then; ValueError if that is something else."""
    pairs = (pair.split(":") for pair in touched.split())
    return {int(number): int(version) for number, version in pairs}


def _versions(context: ContextRow, seq: int, touched: str) -> dict[int, int]:
    """The same; raises CorruptContextError."""
    try:
        return versions_of(touched)
    except (ValueError, AttributeError) as error:
        raise _unreadable(context, seq, error) from error


def _unreadable(context: ContextRow, seq: int, error: Exception) -> CorruptContextError:
    return CorruptContextError(context, f"its record cannot be read ({error})", seq)


def _kind(stored: str) -> PrincipalKind:
    try:
        return PrincipalKind(stored)
    except ValueError as error:
        raise storage_failed(
            f"The journal holds a principal of the unknown kind {stored!r}:"
            " use the antiphon that wrote it, or a newer one.",
            found=stored,
        ) from error
