"""Reading the committed transactions of one context, in order and without a hole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.errors import CorruptContextError
from antiphon_kernel.storage.op_rows import LAST_SEQ, op_id
from antiphon_kernel.storage.rows import BlockChangeRow, ContextRow, StoredOp, Touch
from antiphon_kernel.storage.schema import READABLE_FORMATS
from antiphon_kernel.yjs.restored_ids import decode_restored

BYTES_ONLY: Final = "CASE typeof(changes) WHEN 'blob' THEN changes END"
"""The changes of a transaction; NULL if they are no bytes, which may not even be readable."""


async def check_sequence(database: Database, context: ContextRow) -> int:
    """See that every transaction of a context is there; the number of the last.

    Raises:
        CorruptContextError: if one is missing or has a format that is not known here.
        AntiphonError: storage_failed.
    """
    sql = (
        "SELECT count(*), coalesce(max(seq), 0), min(seq), min(format), max(format) FROM ops"
        " WHERE id BETWEEN ? AND ?"
    )
    everything = op_id(context.number, 0), op_id(context.number, LAST_SEQ)
    rows = await database.select(sql, everything)
    count, last, first, *formats = rows[0]
    if not count:
        raise CorruptContextError(context, "it has no transactions", 1)
    if first != 1 or count != last:
        sql = (
            "SELECT min(seq) + 1 FROM ops o WHERE id BETWEEN ? AND ? AND NOT EXISTS"
            " (SELECT 1 FROM ops n WHERE n.id = o.id + 1)"
        )
        hole = 1 if first != 1 else (await database.select(sql, everything))[0][0]
        raise CorruptContextError(context, f"transaction {hole} is missing", hole)
    if not READABLE_FORMATS.issuperset(formats):
        sql = f"SELECT seq, format, {BYTES_ONLY} FROM ops WHERE id BETWEEN ? AND ? ORDER BY id"
        _checked(context, 0, await database.select(sql, everything))
    return int(last)


async def read_updates(
    database: Database, context: ContextRow, after: int
) -> tuple[list[bytes], frozenset[int]]:
    """The bytes of every transaction behind `after`, and the numbers of the blocks they touched.

    The first of them has `seq` after + 1.

    Raises:
        CorruptContextError: if one is missing or its record cannot be read.
        AntiphonError: storage_failed.
    """
    sql = f"SELECT seq, format, {BYTES_ONLY}, touched FROM ops WHERE id BETWEEN ? AND ? ORDER BY id"
    behind = op_id(context.number, after + 1), op_id(context.number, LAST_SEQ)
    rows = await database.select(sql, behind)
    updates = _checked(context, after, rows)
    try:
        return updates, frozenset(number for row in rows for number in versions_of(row[3]))
    except (ValueError, AttributeError) as error:
        what = f"a record does not say which blocks it touched ({error})"
        raise CorruptContextError(context, what) from error


async def read_ops(
    database: Database,
    context: ContextRow,
    after: int,
    *,
    upto: int | None = None,
    limit: int = -1,
    block: int | None = None,
    seqs: Collection[int] | None = None,
) -> list[StoredOp]:
    """Committed transactions behind `after`, in order.

    Args:
        upto: the last `seq` wanted.
        limit: how many at most; -1 for all.
        block: number of the block that they must have touched.
        seqs: those that are wanted; None for all.

    Raises:
        CorruptContextError: if a record cannot be read.
        AntiphonError: storage_failed.
    """
    where = "o.id BETWEEN ? AND ?"
    last = upto if upto is not None else LAST_SEQ
    values: list[object] = [op_id(context.number, after + 1), op_id(context.number, last)]
    if block is not None:
        where += " AND instr(' ' || o.touched, ?)"
        values.append(f" {block}:")
    if seqs is not None:
        where += " AND o.id IN (SELECT value FROM json_each(?))"
        values.append(json.dumps([op_id(context.number, seq) for seq in seqs]))
    sql = (
        "SELECT o.seq, o.time, p.id, o.operation, o.touched, o.changes, o.unit, r.revivals"
        " FROM ops o JOIN principals p ON p.number = o.principal"
        " LEFT JOIN revived r ON r.context = o.context AND r.seq = o.seq"
        f" WHERE {where} ORDER BY o.id LIMIT ?"
    )
    rows = await database.select(sql, (*values, limit))
    found: list[StoredOp] = []
    for seq, time, principal, operation, touched, changes, unit, revivals in rows:
        try:
            revived = decode_restored(revivals) if revivals is not None else ()
            versions = versions_of(touched)
        except (ValueError, AttributeError) as error:
            raise CorruptContextError(
                context, f"its record cannot be read ({error})", seq
            ) from error
        op = StoredOp(seq, time, principal, operation, versions, bytes(changes), unit, revived)
        found.append(op)
    return found


async def read_touches(
    database: Database, context: ContextRow, after: int, limit: int
) -> list[Touch]:
    """Return the touches of the first `limit` transactions behind `after`, in order.

    Raises:
        CorruptContextError: if a record cannot be read.
        AntiphonError: storage_failed.
    """
    sql = (
        "SELECT seq, operation, length(changes), touched FROM ops"
        " WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
    )
    behind = op_id(context.number, after + 1), op_id(context.number, LAST_SEQ)
    found: list[Touch] = []
    for seq, operation, size, touched in await database.select(sql, (*behind, limit)):
        try:
            found.append(Touch(seq, operation, size, tuple(versions_of(touched))))
        except (ValueError, AttributeError) as error:
            raise CorruptContextError(
                context, f"its record cannot be read ({error})", seq
            ) from error
    return found


async def read_block_changes(
    database: Database, context: ContextRow, block: int
) -> list[BlockChangeRow]:
    """Every change of the block with this number, in order, without what it wrote.

    Raises:
        CorruptContextError: if a record cannot be read.
        AntiphonError: storage_failed.
    """
    sql = (
        "SELECT o.seq, o.touched, o.time, p.id, o.operation FROM ops o"
        " JOIN principals p ON p.number = o.principal"
        " WHERE o.id BETWEEN ? AND ? AND instr(' ' || o.touched, ?) ORDER BY o.id"
    )
    everything = op_id(context.number, 0), op_id(context.number, LAST_SEQ)
    rows = await database.select(sql, (*everything, f" {block}:"))
    found: list[BlockChangeRow] = []
    for seq, touched, time, principal, operation in rows:
        try:
            version = versions_of(touched)[block]
        except (ValueError, KeyError, AttributeError) as error:
            raise CorruptContextError(
                context, f"its record cannot be read ({error})", seq
            ) from error
        found.append(BlockChangeRow(seq, version, time, principal, operation))
    return found


def versions_of(touched: str) -> dict[int, int]:
    """Number of each touched block to the version it had then.

    Raises:
        ValueError: if the column holds something else.
    """
    pairs = (pair.split(":") for pair in touched.split())
    return {int(number): int(version) for number, version in pairs}


def _checked(context: ContextRow, after: int, rows: Sequence[sqlite3.Row]) -> list[bytes]:
    """The third column of rows (seq, format, changes, ...).

    Raises:
        CorruptContextError: if one is missing or its record cannot be read.
    """
    for expected, (seq, format_, changes, *_) in enumerate(rows, after + 1):
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
    return [row[2] for row in rows]
