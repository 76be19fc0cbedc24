"""Snapshots and recent states: what is kept of a context at one `seq`, for quick opening.

The transactions themselves are kept: what is damaged, or does not fit them, is left out, and the
transactions are read instead. Of each kind there is one a context, the newest.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.storage.database import Row, Statement
from antiphon_kernel.storage.rows import ContextRow, Cut, Snapshot
from antiphon_kernel.storage.stores import SqlDatabase
from antiphon_kernel.yjs.id_set import decode_state_vector, encode_state_vector
from antiphon_kernel.yjs.primitives import Reader, write_bytes

_log = logging.getLogger(__name__)

Value = str | bytes | tuple[bytes, ...]
"""A column of a record; bytes that follow each other are stored each behind its length."""


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A table that holds a record of each context."""

    table: str
    format: int
    """Format of the records written by this version; others are left out."""
    values: Callable[[Snapshot], Sequence[Value]]
    """Columns between `seq` and the digest."""
    record: Callable[..., Snapshot]
    """Makes the record of `seq` and these columns; raises ValueError or TypeError."""
    left_out: str
    """Message about a context whose record is left out, with the reason."""

    def statement(self, records: Iterable[tuple[ContextRow, Snapshot]]) -> Statement:
        """Return the statement that puts records in the place of those before."""
        rows = list[Row]()
        for context, one in records:
            columns = (
                b"".join(map(write_bytes, value)) if isinstance(value, tuple) else value
                for value in self.values(one)
            )
            digest = self.digest(context, one)
            rows.append((context.number, self.format, one.seq, *columns, digest))
        marks = ", ".join("?" * len(rows[0])) if rows else ""
        return f"INSERT OR REPLACE INTO {self.table} VALUES ({marks})", rows

    def digest(self, context: ContextRow, record: Snapshot) -> bytes:
        """Return the checksum to verify when a record is read. Raises TypeError."""
        parts = list[bytes]()
        for value in self.values(record):
            pieces = value if isinstance(value, tuple) else (value,)
            parts += [one.encode() if isinstance(one, str) else one for one in pieces]
        about = json.dumps([self.format, context.id, record.seq, *map(len, parts)])
        digest = hashlib.blake2b(about.encode(), digest_size=16)
        for part in parts:
            digest.update(part)
        return digest.digest()


class Records:
    """The records of one kind in one journal."""

    def __init__(self, database: SqlDatabase, kind: RecordKind) -> None:
        self._database = database
        self._kind = kind

    async def read(self, context: ContextRow) -> Snapshot | None:
        """The record of a context; None if there is none that can be trusted."""
        kind, sql = self._kind, f"SELECT * FROM {self._kind.table} WHERE context = ?"
        rows = await self._database.select(sql, (context.number,))
        if not rows:
            return None
        _, format_, *values, digest = rows[0]
        if format_ == kind.format:
            with suppress(ValueError, TypeError):
                record = kind.record(*values)
                if kind.digest(context, record) == digest:
                    return record
            self.discard(context, "its bytes are not those that were written")
        else:
            what = f"it has the format {format_!r}, this antiphon reads {kind.format}"
            self.discard(context, what)
        return None

    def discard(self, context: ContextRow, why: str) -> None:
        """Say that a record is left out; the next one replaces it."""
        _log.warning(self._kind.left_out, context.label, why)

    async def write(self, context: ContextRow, record: Snapshot) -> None:
        """Put a record in the place of the one before."""
        await self._database.write([self._kind.statement([(context, record)])])


def _split(state: bytes) -> tuple[bytes, ...]:
    reader, parts = Reader(state), list[bytes]()
    while reader.remaining:
        parts.append(reader.block())
    return tuple(parts)


SNAPSHOTS: Final = RecordKind(
    "snapshots",
    2,
    lambda one: (one.state_vector, one.state, one.item_index),
    lambda seq, vector, state, index: Snapshot(seq, vector, _split(state), index),
    "the snapshot of context %s is left out, its transactions are read instead: %s",
)
"""Whole states."""


def _recent_values(recent: Snapshot) -> Sequence[Value]:
    cut, ends = recent.cut, decode_state_vector(recent.state_vector)
    assert cut is not None
    numbers = cut.blocks, cut.omitted, cut.complete
    clocks, about = list(cut.clocks.items()), (dict(cut.meta), dict(cut.members))
    return json.dumps([*numbers, clocks, list(ends.items()), *about]), *recent.state


def _recent_state(seq: int, about: str, state: bytes) -> Snapshot:
    blocks, omitted, complete, clocks, ends, meta, members = json.loads(about)
    cut = Cut(omitted, dict(clocks), meta, members, blocks, complete)
    return Snapshot(seq, encode_state_vector(dict(ends)), (state,), cut=cut)


RECENT_STATES: Final = RecordKind(
    "recent_states",
    1,
    _recent_values,
    _recent_state,
    "the recent state of context %s is left out: %s",
)
"""States of long contexts without the oldest blocks, to open these without them."""
