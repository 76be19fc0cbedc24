"""Snapshots, pages and recent states: what is kept of a context at one `seq`, for quick opening.

The transactions themselves are kept: a snapshot that is damaged, or does not fit them, is left out
and everything is read from the transactions. There is one snapshot a context, the newest.

A page holds the last blocks, to be read without opening the context. One that is damaged, or older
than the last transaction, is left out. A recent state holds more of the last blocks as the engine
writes them, to open the context without its oldest ones; a damaged one is left out, too.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from antiphon_kernel.storage.database import Database, Statement
from antiphon_kernel.storage.rows import (
    SNAPSHOT_FORMAT,
    ContextRow,
    Snapshot,
    StoredRecentState,
)
from antiphon_kernel.yjs.varint import read_var_uint, write_var_uint

_log = logging.getLogger(__name__)


class Snapshots:
    """The snapshots of one journal."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, context: ContextRow) -> Snapshot | None:
        """The snapshot of a context; None if there is none that can be trusted.

        Raises:
            AntiphonError: storage_failed if the database cannot be read.
        """
        sql = (
            "SELECT format, seq, state_vector, state, headers, digest FROM snapshots"
            " WHERE context = ?"
        )
        rows = await self._database.select(sql, (context.number,))
        if not rows:
            return None
        format_, *parts, digest = rows[0]
        wrong = "its bytes are not those that were written"
        if format_ != SNAPSHOT_FORMAT:
            wrong = f"it has the format {format_!r}, this antiphon reads {SNAPSHOT_FORMAT}"
        elif list(map(type, parts)) != [int, bytes, bytes, bytes]:
            wrong = "its columns have the wrong types"
        else:
            seq, vector, state, item_index = parts
            with suppress(ValueError):
                snapshot = Snapshot(seq, vector, _split(state), item_index)
                if snapshot.digest(context) == digest:
                    return snapshot
        self.discard(context, wrong)
        return None

    def discard(self, context: ContextRow, why: str) -> None:
        """Say that a snapshot is left out; the next one replaces it."""
        _log.warning(
            "the snapshot of context %s is left out, its transactions are read instead: %s",
            context.label,
            why,
        )

    async def write(self, context: ContextRow, snapshot: Snapshot) -> None:
        """Put a snapshot in the place of the one before."""
        await self._database.write([snapshot_rows([(context, snapshot)])])


def snapshot_rows(snapshots: Iterable[tuple[ContextRow, Snapshot]]) -> Statement:
    """Return the statement that puts snapshots in the place of those before."""
    rows = [
        (
            context.number,
            SNAPSHOT_FORMAT,
            one.seq,
            one.state_vector,
            b"".join(write_var_uint(len(part)) + part for part in one.state),
            one.item_index,
            one.digest(context),
        )
        for context, one in snapshots
    ]
    return "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", rows


def _split(state: bytes) -> tuple[bytes, ...]:
    """Return updates that follow each other, each behind its length; raises ValueError."""
    parts, at = list[bytes](), 0
    while at < len(state):
        length, at = read_var_uint(state, at)
        parts.append(state[at : at + length])
        at += length
    return tuple(parts)


PAGE_FORMAT: Final = 1
"""Format of the pages written by this version; others are left out."""


class Pages:
    """The pages of one journal, one for each context that has been closed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, context: ContextRow, seq: int) -> bytes | None:
        """The page of a context at its last transaction `seq`; None if there is none of that."""
        sql = "SELECT page, digest FROM pages WHERE context = ? AND format = ? AND seq = ?"
        rows = await self._database.select(sql, (context.number, PAGE_FORMAT, seq))
        if not rows:
            return None
        page, digest = rows[0]
        if not isinstance(page, bytes) or _digest(context, PAGE_FORMAT, seq, page) != digest:
            _log.warning("the page of context %s is damaged and left out", context.label)
            return None
        return page

    async def write(self, context: ContextRow, seq: int, page: bytes) -> None:
        """Put a page in the place of the one before."""
        values = context.number, PAGE_FORMAT, seq, page, _digest(context, PAGE_FORMAT, seq, page)
        sql = "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)"
        await self._database.write([(sql, [values])])


RECENT_FORMAT: Final = 1
"""Format of the recent states written by this version; others are left out."""


class RecentStates:
    """The recent states of one journal, one for each long context that has been closed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, context: ContextRow) -> StoredRecentState | None:
        """The last blocks of a context; None if there are none that can be trusted."""
        sql = "SELECT seq, about, state, digest FROM recent_states WHERE context = ? AND format = ?"
        rows = await self._database.select(sql, (context.number, RECENT_FORMAT))
        if not rows:
            return None
        seq, about, state, digest = rows[0]
        if isinstance(about, str) and isinstance(state, bytes):
            if _digest(context, RECENT_FORMAT, seq, about.encode(), state) == digest:
                blocks, omitted, complete, clocks, ends, meta, members = json.loads(about)
                clocks, ends = dict(clocks), dict(ends)
                return StoredRecentState(
                    seq, blocks, omitted, complete, clocks, ends, meta, members, state
                )
        _log.warning("the recent state of context %s is damaged and left out", context.label)
        return None

    async def seq(self, context: ContextRow) -> int | None:
        """Return the transaction after which the last blocks were stored; None if they are not."""
        sql = "SELECT seq FROM recent_states WHERE context = ? AND format = ?"
        rows = await self._database.select(sql, (context.number, RECENT_FORMAT))
        return int(rows[0][0]) if rows else None

    async def write(self, context: ContextRow, recent: StoredRecentState) -> None:
        """Put the last blocks in the place of those before."""
        numbers = recent.blocks, recent.omitted, recent.complete
        clocks, ends = list(recent.clocks.items()), list(recent.ends.items())
        about = json.dumps([*numbers, clocks, ends, dict(recent.meta), dict(recent.members)])
        parts = about.encode(), recent.state
        digest = _digest(context, RECENT_FORMAT, recent.seq, *parts)
        values = context.number, RECENT_FORMAT, recent.seq, about, recent.state, digest
        sql = "INSERT OR REPLACE INTO recent_states VALUES (?, ?, ?, ?, ?, ?)"
        await self._database.write([(sql, [values])])


def _digest(context: ContextRow, format_: int, seq: int, *parts: bytes) -> bytes:
    about = json.dumps([format_, context.id, seq, *map(len, parts)]).encode()
    return hashlib.blake2b(b"".join((about, *parts)), digest_size=16).digest()
