"""Reading the committed transactions of one context, in order and without a hole."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from antiphon_kernel.journal.damage import DamagedContext
from antiphon_kernel.journal.database import Database
from antiphon_kernel.journal.rows import ContextRow
from antiphon_kernel.journal.schema import READABLE_FORMATS


async def read_updates(database: Database, context: ContextRow, after: int) -> list[bytes]:
    """The bytes of every transaction behind `after`; the first of them has `seq` after + 1.

    Raises:
        DamagedContext: if one is missing or its record cannot be read.
        AntiphonError: storage_failed.
    """
    sql = "SELECT seq, format, changes FROM ops WHERE context = ? AND seq > ? ORDER BY seq"
    rows = await database.select(sql, (context.number, after))
    return checked_updates(context, after, rows)


def checked_updates(
    context: ContextRow, after: int, rows: Sequence[sqlite3.Row]
) -> list[bytes]:
    """The third column of rows (seq, format, changes).

    Raises:
        DamagedContext: if one is missing or its record cannot be read.
    """
    for expected, (seq, format_, changes) in enumerate(rows, after + 1):
        if seq != expected:
            raise DamagedContext(context, f"transaction {expected} is missing", expected)
        if format_ not in READABLE_FORMATS:
            raise DamagedContext(
                context,
                f"its record has the format {format_!r}, this antiphon reads"
                f" {', '.join(map(str, sorted(READABLE_FORMATS)))}",
                seq,
            )
        if not isinstance(changes, bytes):
            raise DamagedContext(context, "its record holds no bytes", seq)
    return [row[2] for row in rows]
