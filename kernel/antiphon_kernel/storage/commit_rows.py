"""A group of commits as rows, table by table; of a block or an undo row only its last state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import accumulate, pairwise
from typing import Final

from antiphon_kernel.storage.database import Row, Statement
from antiphon_kernel.storage.rows import BlockRow, Commit, DriftRow, FileRow
from antiphon_kernel.storage.schema import RECORD_FORMAT
from antiphon_kernel.storage.snapshots import SNAPSHOTS
from antiphon_kernel.types.records import Actor, Run
from antiphon_kernel.yjs.restored_ids import encode_restored

SEQ_BITS: Final = 32

LAST_SEQ: Final = 2**SEQ_BITS - 1
"""No `seq` is higher."""

_MOST_FREQUENT: Final = "append"
"""The operation that is stored as NULL."""

_BLOCK_BITS: Final = 12


def op_id(context: int, seq: int) -> int:
    """Return the number of a transaction: those of one context (its number) follow each other."""
    return (context << SEQ_BITS) + seq


def stored_blocks(blocks: Sequence[BlockRow]) -> int | str:
    """Encode the blocks a transaction touched, with their versions then: one number, or a text."""
    if len(blocks) == 1 and blocks[0].number < 2**_BLOCK_BITS:
        return (blocks[0].version << _BLOCK_BITS) + blocks[0].number
    return " ".join(f"{block.number}:{block.version}" for block in blocks)


_BLOB: Final = (
    "INSERT INTO blobs VALUES (?, ?) ON CONFLICT (hash) DO UPDATE SET data = excluded.data"
    " WHERE blobs.data <> excluded.data"
)
"""The same bytes again repair what is damaged."""

ADD_PRESENCE: Final = (
    "INSERT OR REPLACE INTO presences SELECT ?1, ?2, ?3, s.number, ?5,"
    " (SELECT number FROM blocks WHERE id = ?6), ?7, ?8"
    " FROM sessions s JOIN contexts c ON c.number = ?1 WHERE s.id = ?4"
)
"""Context, version, time, ids of session and block; both and the context are recorded."""

_SESSION: Final = "(SELECT number FROM sessions WHERE id = ?)"


def session_rows(sessions: Iterable[Actor], principals: Mapping[str, int]) -> Statement:
    """Return the statement that records sessions; those that are recorded already stay as they are.

    `principals` maps ids to the numbers that stand for them in other rows.
    """
    return (
        "INSERT OR IGNORE INTO sessions (id, principal, via, opened) VALUES (?, ?, ?, ?)",
        [(one.session, principals[one.principal.id], one.via, one.since) for one in sessions],
    )


def commit_rows(group: Sequence[Commit], principals: Mapping[str, int]) -> Iterator[Statement]:
    """Everything that a group of commits stores, in an order in which nothing is referred to early.

    Its sessions are in the journal, or in a statement before these.
    """
    yield from _contexts(group, principals)
    yield (
        f"INSERT INTO ops VALUES (?, ?, ?, ?, {_SESSION}, ?, ?, ?, ?)",
        [
            (
                op_id(one.context.number, one.seq),
                RECORD_FORMAT,
                one.time,
                principals[one.actor.principal.id],
                one.actor.session,
                one.operation if one.operation != _MOST_FREQUENT else None,
                one.unit,
                stored_blocks(one.blocks),
                one.update,
            )
            for one in group
        ],
    )
    yield _blocks(group)
    yield from _undo(group, principals)
    yield from _rare_rows(group, principals)


def file_rows(file: FileRow, *, is_new: bool = False) -> Iterator[Statement]:
    """Put the row of a file in the place of the one before, also of another one with its path.

    That of a new context does not: of two kernels that make one of the same file, one is refused.
    """
    if not is_new:
        yield "DELETE FROM files WHERE path = ? AND context <> ?", [(file.path, file.context)]
    marks = "?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
    yield f"INSERT OR REPLACE INTO files VALUES ({marks})", [astuple(file)]


def drift_rows(drifts: Iterable[DriftRow], *, if_staged: bool = False) -> Statement:
    """Return the statement that puts rows of drifts in the place of those before.

    With `if_staged` a drift that has arrived stays so: a commit may have failed for all that is
    known here, and be on disk.
    """
    sql = (
        "INSERT INTO drifts VALUES"
        " (?, ?, ?, ?, ?, (SELECT number FROM principals WHERE id = ?), ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET (version, state, seq, block, request, outcome) ="
        " (excluded.version, excluded.state, excluded.seq, excluded.block, excluded.request,"
        " excluded.outcome)"
    )
    where = " WHERE drifts.state IN ('staged', excluded.state)" if if_staged else ""
    return sql + where, [astuple(one) for one in drifts]


def _rare_rows(group: Sequence[Commit], principals: Mapping[str, int]) -> Iterator[Statement]:
    yield (
        "INSERT OR IGNORE INTO clients VALUES (?, ?, ?)",
        [
            (one.context.number, client, principals[one.actor.principal.id])
            for one in group
            for client in one.clients
        ],
    )
    # In one order, in which no two kernels wait for each other.
    yield _BLOB, sorted((blob.hash, blob.data) for one in group for blob in one.blobs)
    yield (
        "INSERT INTO revived VALUES (?, ?, ?, ?)",
        [
            (one.context.number, one.seq, RECORD_FORMAT, encode_restored(one.revivals))
            for one in group
            if one.revivals
        ],
    )
    yield (
        "INSERT INTO inherited_blame VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                one.context.number,
                text.block,
                text.section or "",
                text.version,
                RECORD_FORMAT,
                _stated(text.runs),
            )
            for one in group
            for text in one.inherited
        ],
    )
    for one in group:
        if one.file is not None:
            yield from file_rows(one.file, is_new=one.seq == 2)
    yield drift_rows(one.drift for one in group if one.drift is not None)
    snapshots = ((one.context, one.snapshot) for one in group if one.snapshot is not None)
    yield SNAPSHOTS.statement(snapshots)


def _stated(runs: Sequence[Run]) -> str:
    """Return the JSON of runs: code points from where to where, and who wrote them when."""
    ends = [0, *accumulate(run.length for run in runs)]
    return json.dumps(
        [(*place, *astuple(run.stamp)) for place, run in zip(pairwise(ends), runs, strict=True)]
    )


def _contexts(group: Sequence[Commit], principals: Mapping[str, int]) -> Iterator[Statement]:
    founded = [one.context for one in group if one.seq == 1]
    restated = [one.context for one in group if one.restated]
    insert = (
        "INSERT INTO contexts"
        " (number, id, label, epoch, created, kind, creator, source, source_seq, copied)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    yield (
        insert,
        [
            (
                *(row.number, row.id, row.label, row.epoch, row.created, row.kind),
                principals[row.creator] if row.creator is not None else None,
                *(astuple(row.origin) if row.origin is not None else (None, None, None)),
            )
            for row in founded
        ],
    )
    yield (
        "UPDATE contexts SET label = ?, archived = ? WHERE number = ?",
        [(row.label, row.archived, row.number) for row in restated],
    )


def _blocks(group: Sequence[Commit]) -> Statement:
    rows: dict[tuple[int, int], Row] = {}
    for one in group:
        for block in one.blocks:
            key = one.context.number, block.number
            rows[key] = (*key, block.id, block.version)
    upsert = (
        "INSERT INTO blocks VALUES (?, ?, ?, ?) ON CONFLICT (context, number)"
        " DO UPDATE SET version = excluded.version"
    )
    return upsert, list(rows.values())


def _undo(group: Sequence[Commit], principals: Mapping[str, int]) -> Iterator[Statement]:
    rows: dict[tuple[int, int, str], Row | None] = {}
    for one in group:
        context = one.context.number
        for row in one.undo:
            number = principals[row.principal]
            rows[context, row.unit, row.block] = (context, *row[:2], number, *row[3:])
        for row in one.dropped_undo:
            rows[context, row.unit, row.block] = None
    yield (
        "INSERT OR REPLACE INTO undo VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [row for row in rows.values() if row is not None],
    )
    yield (
        "DELETE FROM undo WHERE context = ? AND unit = ? AND block = ?",
        [key for key, row in rows.items() if row is None],
    )
