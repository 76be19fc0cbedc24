"""A data folder of unknown origin, described without opening it as a kernel would.

Nothing in it is changed, and no view, trigger or function that its databases may hold is run.
"""

from __future__ import annotations

import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.storage import AUTH_FILE, JOURNAL_FILE, open_to_read
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import join_names, truncate

_SECONDS: Final = 5.0
"""How long one file may take."""

_MANY: Final = 1_000
"""Rows of a table that are read."""


def survey(data: Path, now: int) -> Iterator[str]:
    """Return lines for a person: the owner, contexts, principals, invitations and the port.

    Args:
        now: milliseconds since the epoch, for invitations that have expired.
    """
    yield f"{data.resolve()}"
    try:
        yield from _journal(data / JOURNAL_FILE)
    except (sqlite3.Error, AntiphonError, OSError, ValueError, TypeError) as error:
        yield f"  journal: cannot be read ({truncate(str(error))})"
    try:
        yield from _auth(data / AUTH_FILE, now)
    except (sqlite3.Error, AntiphonError, OSError, ValueError, TypeError) as error:
        yield f"  roles and invitations: cannot be read ({truncate(str(error))})"
    for name in ("kernel.port", "kernel.json"):
        path = data / name
        if path.is_file() and stat.S_ISREG(path.lstat().st_mode):
            with path.open(encoding="utf-8", errors="replace") as file:
                yield f"  {name}: {truncate(' '.join(file.read(1_000).split()))}"


def _journal(path: Path) -> Iterator[str]:
    if not path.exists():
        yield "  journal: none"
        return
    with open_to_read(path, untouched=True) as database:
        owner = _rows(database, "kernel", "SELECT value FROM kernel WHERE key = 'owner'")
        contexts = _rows(database, "contexts", "SELECT label, created FROM contexts")
        people = _rows(database, "principals", "SELECT created FROM principals")
    moments = [int(row[-1]) for row in (*contexts, *people)]
    founder = _text(owner[0][0]) if owner else "nobody"
    since = f" at {iso_time(min(moments))}" if moments else ""
    yield f"  founded by {founder}{since}"
    yield f"  contexts ({len(contexts)}): {join_names(_text(row[0]) for row in contexts)}"


def _auth(path: Path, now: int) -> Iterator[str]:
    if not path.exists():
        yield "  roles and invitations: none"
        return
    with open_to_read(path, untouched=True) as database:
        users = _rows(database, "users", "SELECT username, role FROM users ORDER BY number")
        sql = (
            "SELECT c.number, u.username, u.role, c.expires, c.revoked, c.uses_allowed, c.uses"
            " FROM credentials c LEFT JOIN users u ON u.number = c.user ORDER BY c.number"
        )
        given = _rows(database, "credentials", sql)
    yield f"  principals ({len(users)}): {join_names(f'{_text(a)}, {_text(b)}' for a, b in users)}"
    valid = [
        f"{number} for {_text(name)}, {_text(role)},"
        f" {'for ever' if expires is None else 'until ' + iso_time(int(expires))}"
        for number, name, role, expires, revoked, allowed, uses in given
        if revoked is None
        and (expires is None or int(expires) > now)
        and (allowed is None or int(uses) < int(allowed))
    ]
    yield f"  invitations still valid ({len(valid)}): {join_names(valid)}"


def _rows(database: sqlite3.Connection, table: str, sql: str) -> Sequence[tuple[Any, ...]]:
    """Return rows of a table, in which nothing of the file's own is run.

    Raises:
        ValueError: if there is no such table, or another thing of this name.
        sqlite3.Error: if it cannot be read in the time that it may take.
    """
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA query_only = ON")
    end = time.monotonic() + _SECONDS
    database.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    what = (
        "SELECT type FROM sqlite_schema WHERE name COLLATE NOCASE IN (?, 'users')"
        " AND (type <> 'table' OR sql NOT LIKE 'CREATE TABLE %')"
    )
    if database.execute(what, (table,)).fetchone() is not None:
        raise ValueError(f"{table} is no ordinary table")
    return database.execute(sql).fetchmany(_MANY)


def _text(value: object) -> str:
    return " ".join(str(value).split())
