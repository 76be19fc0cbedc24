"""Checks of `auth.db`, which says who may come in."""

from __future__ import annotations

import asyncio
from pathlib import Path

from antiphon_kernel.maintenance.findings import Check, Finding, Report
from antiphon_kernel.storage import AUTH_FILE, AUTH_MIGRATIONS, Database, copy_pages
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.roles import AccessRole, CredentialKind

_COUNTED = (
    "SELECT c.number, c.kind, c.uses_allowed, c.uses,"
    " (SELECT count(*) FROM clients WHERE credential = c.number) FROM credentials c"
)


async def check_auth(data: Path, folder: Path, journal: Database, report: Report) -> None:
    """Check a copy of the file in `data`, made in `folder`; without a file there is nothing.

    Args:
        journal: the kernel's journal, which knows the principals.
    """
    if not (data / AUTH_FILE).exists():
        return

    def find(what: str) -> None:
        report.findings.append(Finding(Check.AUTH, what))

    copy = folder / AUTH_FILE
    rows = await journal.select("SELECT username, id FROM principals")
    names = {str(row[0]): str(row[1]) for row in rows}
    try:
        await asyncio.to_thread(copy_pages, data / AUTH_FILE, copy)
        database = await Database.open(copy, AUTH_MIGRATIONS)
    except AntiphonError as error:
        find(error.message)
        return
    try:
        for (said,) in await database.select("PRAGMA integrity_check(20)"):
            if said != "ok":
                find(f"the database is damaged: {said}")
        for table, row, parent, _ in await database.select("PRAGMA foreign_key_check"):
            find(f"row {row} of {table} refers to a row of {parent} that is not there")
        sql = "SELECT username, principal, role FROM users"
        for username, principal, role in await database.select(sql):
            # Whom the journal does not know yet was being added; the next kernel goes on there.
            if names.get(username, principal) != principal:
                find(f"{username} is not the principal that the journal knows by this name")
            if role not in tuple(AccessRole):
                find(f"{username} has the unknown role {role!r}")
        owner = await journal.select("SELECT value FROM kernel WHERE key = 'owner'")
        sql = "SELECT count(*) FROM users WHERE role = ? AND username = ?"
        for (name,) in owner:
            if not (await database.select(sql, (AccessRole.OWNER, name)))[0][0]:
                find(f"{name}, who founded the kernel, is no owner")
        for number, kind, allowed, uses, clients in await database.select(_COUNTED):
            if kind not in tuple(CredentialKind):
                find(f"credential {number} has the unknown kind {kind!r}")
            if clients > uses or (allowed is not None and uses > allowed):
                find(f"credential {number} has let in more than it was made for")
    except AntiphonError as error:
        find(error.message)
    finally:
        await database.close()
