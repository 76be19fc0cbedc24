"""One transaction, carried out where the file is open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from antiphon_kernel.storage.open_files import OpenFiles

Row = tuple[object, ...]

Statement = tuple[str, Sequence[Row]]
"""SQL, and the rows it is carried out for."""


def execute(
    connection: sqlite3.Connection, statements: Iterable[Statement], files: OpenFiles
) -> None:
    """All statements in one transaction, or none of them; those without rows are left out.

    Args:
        files: what the connection has open; they may be deleted at any time.

    Raises:
        sqlite3.Error: nothing of it has happened, unless it was the commit that failed.
        StorageLostError: what is committed is not in the file at its path.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        for sql, rows in statements:
            if rows:
                connection.executemany(sql, rows)
        files.check_before_commit()
        connection.execute("COMMIT")
        files.check_after_commit()
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            files.check_after_commit()  # a file that was cut gives errors that do not say so
        raise
