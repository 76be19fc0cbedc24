"""Contents of a data folder: who joined, wrote and ran what; a summary of an unknown folder."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.contexts.opening import open_document
from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import (
    AUTH_FILE,
    JOURNAL_FILE,
    AuthStore,
    ContextRow,
    CorruptContextError,
    Decision,
    Journal,
    copy_pages,
    open_to_read,
)
from antiphon_kernel.types.clock import iso_time, moment_of
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind, CallPermission
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import join_names, quote, truncate

_NOT_RUN: Final = (CallPermission.ASKED, CallPermission.DENIED, CallPermission.WITHDRAWN)

_PAGE: Final = 2_000
"""Transactions read at once."""


class AuditKind(StrEnum):
    """Kind of audit event."""

    JOINED = "joined"
    WROTE = "wrote"
    RAN = "ran"
    DECIDED = "decided"
    """An owner has decided about who may come in or do what."""
    DAMAGED = "damaged"
    """Nobody did anything: what happened in this context cannot be read."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One thing that happened; several transactions of one kind in a row are one event."""

    time: int
    """Milliseconds since the epoch; of a row of transactions the first."""
    kind: AuditKind
    username: str
    context: str | None = None
    """Label of the context."""
    what: str = ""
    """How one joined, the operation, the command, the decision, or the damage."""
    blocks: tuple[str, ...] = ()
    count: int = 1
    """Transactions."""
    until: int = 0
    """When the last of them was committed."""

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "time": iso_time(self.time),
            "event": str(self.kind),
            "principal": self.username,
        }
        if self.context is not None:
            fields["context"] = self.context
        fields["via" if self.kind is AuditKind.JOINED else "what"] = self.what
        if self.kind is AuditKind.WROTE:
            until = iso_time(self.until)
            fields |= {"blocks": list(self.blocks), "count": self.count, "until": until}
        return fields


async def audit_log(data: Path, label: str | None = None) -> list[AuditEvent]:
    """Everything that happened in a data folder, oldest first.

    Args:
        label: only what concerns the context of this label (and who joined).

    Raises:
        AntiphonError: context_not_found; storage_failed if there is no journal that can be read.
    """
    with tempfile.TemporaryDirectory(prefix="antiphon-log-") as folder:
        copy = Path(folder) / JOURNAL_FILE
        await asyncio.to_thread(copy_pages, data / JOURNAL_FILE, copy)
        journal = await Journal.open(copy)
        try:
            names: dict[str, str] = {one.id: one.username for one in await journal.principals()}
            events = [
                AuditEvent(one.opened, AuditKind.JOINED, names[one.principal], what=one.via)
                for one in await journal.sessions()
            ]
            events += await _decisions(data, Path(folder), names)
            rows = await journal.contexts()
            if label is not None and label not in (row.label for row in rows):
                known = join_names(row.label for row in rows)
                raise AntiphonError(
                    ErrorCode.CONTEXT_NOT_FOUND,
                    f"There is no context {quote(label)}. Known: {known}.",
                    reference=truncate(label),
                )
            for row in rows:
                if label is None or row.label == label:
                    events += await _of_context(journal, row, names)
        finally:
            await journal.close()
    return sorted(events, key=lambda event: event.time)


async def _decisions(data: Path, folder: Path, names: Mapping[str, str]) -> list[AuditEvent]:
    """Read a copy of the roles and credentials; nothing if there are none."""
    if not (data / AUTH_FILE).exists():
        return []
    copy = folder / AUTH_FILE
    await asyncio.to_thread(copy_pages, data / AUTH_FILE, copy)
    auth = await AuthStore.open(copy)
    try:
        return [
            AuditEvent(
                one.time,
                AuditKind.DECIDED,
                names.get(one.principal, one.principal),
                what=one.what,
            )
            for one in await auth.records(Decision)
        ]
    finally:
        await auth.database.close()


async def _of_context(
    journal: Journal, row: ContextRow, names: Mapping[str, str]
) -> list[AuditEvent]:
    try:
        stored, document = await open_document(journal, row, client_id=1)
    except CorruptContextError as error:
        return [AuditEvent(row.created, AuditKind.DAMAGED, "system", row.label, error.what)]
    numbers = {block.number: block.id for block in stored.blocks}
    commands, written, after = [*_commands(document, row, names)], list[AuditEvent](), 0
    document.close()
    while ops := await journal.ops(row, after=after, limit=_PAGE):
        after = ops[-1].seq
        for op in ops:
            blocks = tuple(numbers[number] for number in op.versions if number in numbers)
            username = names.get(op.principal, op.principal)
            last, new = written[-1] if written else None, (username, op.operation, blocks)
            if last is not None and (last.username, last.what, last.blocks) == new:
                written[-1] = replace(last, count=last.count + 1, until=op.time)
                continue
            about = op.time, AuditKind.WROTE, username, row.label, op.operation, blocks
            written.append(AuditEvent(*about, until=op.time))
    return commands + written


def _commands(
    document: Document, row: ContextRow, names: Mapping[str, str]
) -> Iterable[AuditEvent]:
    for block in document.block_ids():
        header = document.header(block)
        is_call = header.kind == BlockKind.TOOL_CALL and not is_drifted(header.metadata)
        if is_call and header.permission not in _NOT_RUN:
            try:
                time = moment_of(header.created)
            except ValueError:
                time = row.created
            username = names.get(header.author, header.author)
            command = document.text(block) if header.is_shell else header.tool_name or ""
            yield AuditEvent(time, AuditKind.RAN, username, row.label, command, (block,))


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
    readers = (
        ("journal", data / JOURNAL_FILE, _journal),
        ("roles and invitations", data / AUTH_FILE, partial(_auth, now=now)),
    )
    for what, path, read in readers:
        if not path.exists():
            yield f"  {what}: none"
            continue
        try:
            with open_to_read(path, untouched=True) as database:
                yield from read(database)
        except (sqlite3.Error, AntiphonError, OSError, ValueError, TypeError) as error:
            yield f"  {what}: cannot be read ({truncate(str(error))})"
    for name in ("kernel.port", "kernel.json"):
        path = data / name
        if path.is_file() and stat.S_ISREG(path.lstat().st_mode):
            with path.open(encoding="utf-8", errors="replace") as file:
                yield f"  {name}: {truncate(' '.join(file.read(1_000).split()))}"


def _journal(database: sqlite3.Connection) -> Iterator[str]:
    owner = _rows(database, "kernel", "SELECT value FROM kernel WHERE key = 'owner'")
    contexts = _rows(database, "contexts", "SELECT label, created FROM contexts")
    people = _rows(database, "principals", "SELECT created FROM principals")
    moments = [int(row[-1]) for row in (*contexts, *people)]
    founder = _text(owner[0][0]) if owner else "nobody"
    since = f" at {iso_time(min(moments))}" if moments else ""
    yield f"  founded by {founder}{since}"
    yield f"  contexts ({len(contexts)}): {join_names(_text(row[0]) for row in contexts)}"


def _auth(database: sqlite3.Connection, now: int) -> Iterator[str]:
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
