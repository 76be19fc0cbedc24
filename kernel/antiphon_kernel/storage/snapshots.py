"""Snapshots: the state of a context at one `seq`, for quick opening only.

The transactions themselves are kept: a snapshot that is damaged, or does not fit them, is left out
and everything is read from the transactions. There is one snapshot a context, the newest.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.rows import ContextRow

SNAPSHOT_FORMAT: Final = 1
"""Format of the snapshots written by this version; others are left out."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A context as it was after transaction `seq`."""

    seq: int
    state_vector: bytes
    state: bytes
    """The whole document as one update."""
    headers: bytes
    """The header of every block, in whatever form the reader of headers understands."""

    def digest(self, context: ContextRow) -> bytes:
        """Return the checksum to verify when it is read."""
        parts = (self.state_vector, self.state, self.headers)
        about = json.dumps([SNAPSHOT_FORMAT, context.id, self.seq, *map(len, parts)])
        digest = hashlib.blake2b(about.encode(), digest_size=16)
        for part in parts:
            digest.update(part)
        return digest.digest()


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
        snapshot = Snapshot(*parts)
        wrong = None
        if format_ != SNAPSHOT_FORMAT:
            wrong = f"it has the format {format_!r}, this antiphon reads {SNAPSHOT_FORMAT}"
        elif list(map(type, parts)) != [int, bytes, bytes, bytes]:
            wrong = "its columns have the wrong types"
        elif snapshot.digest(context) != digest:
            wrong = "its bytes are not those that were written"
        if wrong is not None:
            self.discard(context, wrong)
            return None
        return snapshot

    def discard(self, context: ContextRow, why: str) -> None:
        """Say that a snapshot is left out; the next one replaces it."""
        _log.warning(
            "the snapshot of context %s is left out, its transactions are read instead: %s",
            context.label,
            why,
        )

    async def write(self, context: ContextRow, snapshot: Snapshot) -> None:
        """Put a snapshot in the place of the one before.

        Raises:
            AntiphonError: storage_failed.
        """
        row = (
            context.number,
            SNAPSHOT_FORMAT,
            snapshot.seq,
            snapshot.state_vector,
            snapshot.state,
            snapshot.headers,
            snapshot.digest(context),
        )
        sql = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)"
        await self._database.write([(sql, [row])])
