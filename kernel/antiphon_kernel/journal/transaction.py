"""One transaction, carried out where the file is open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

Row = tuple[object, ...]

Statement = tuple[str, Sequence[Row]]
"""SQL, and the rows it is carried out for."""


def carry_out(connection: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    """All statements in one transaction, or none of them; those without rows are left out.

    Raises:
        sqlite3.Error: nothing of it has happened, unless it was the commit that failed.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        for sql, rows in statements:
            if rows:
                connection.executemany(sql, rows)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
