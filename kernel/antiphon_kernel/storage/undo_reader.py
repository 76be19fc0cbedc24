"""Reading the undo stacks of one context."""

from __future__ import annotations

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.rows import ContextRow, UndoRow


async def read_undo(database: Database, context: ContextRow) -> tuple[UndoRow, ...]:
    """Everything that can be undone or redone, each stack from the bottom up.

    Raises:
        AntiphonError: storage_failed.
    """
    sql = (
        "SELECT u.unit, p.id, s.id, u.kind, u.stack, u.place, u.time, u.blocks"
        " FROM undo u JOIN principals p ON p.number = u.principal"
        " JOIN sessions s ON s.number = u.session WHERE u.context = ? ORDER BY u.place"
    )
    return tuple(
        UndoRow(
            unit=row[0],
            principal=row[1],
            session=row[2],
            kind=row[3],
            stack=row[4],
            place=row[5],
            time=row[6],
            blocks=tuple(row[7].split()),
        )
        for row in await database.select(sql, (context.number,))
    )
