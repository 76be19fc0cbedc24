"""Audit log: who joined, wrote or ran what, from a journal's sessions and transactions."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
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
)
from antiphon_kernel.types.clock import iso_time, moment_of
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
                    events += [event async for event in _of_context(journal, row, names)]
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
) -> AsyncIterator[AuditEvent]:
    try:
        stored, document = await open_document(journal, row, client_id=1)
    except CorruptContextError as error:
        yield AuditEvent(row.created, AuditKind.DAMAGED, "system", row.label, error.what)
        return
    numbers = {block.number: block.id for block in stored.blocks}
    for event in _commands(document, row, names):
        yield event
    document.close()
    last: AuditEvent | None = None
    after = 0
    while ops := await journal.ops(row, after=after, limit=_PAGE):
        after = ops[-1].seq
        for op in ops:
            blocks = tuple(numbers[number] for number in op.versions if number in numbers)
            username = names.get(op.principal, op.principal)
            event = AuditEvent(
                op.time, AuditKind.WROTE, username, row.label, op.operation, blocks, until=op.time
            )
            if last is not None and _continues(last, event):
                last = replace(last, count=last.count + 1, until=op.time)
                continue
            if last is not None:
                yield last
            last = event
    if last is not None:
        yield last


def _continues(last: AuditEvent, event: AuditEvent) -> bool:
    return (last.username, last.what, last.blocks) == (event.username, event.what, event.blocks)


def _commands(
    document: Document, row: ContextRow, names: Mapping[str, str]
) -> Iterable[AuditEvent]:
    for block in document.block_ids():
        header = document.header(block)
        if header.kind == BlockKind.TOOL_CALL and header.permission not in _NOT_RUN:
            try:
                time = moment_of(header.created)
            except ValueError:
                time = row.created
            username = names.get(header.author, header.author)
            command = document.text(block) if header.is_shell else header.tool_name or ""
            yield AuditEvent(time, AuditKind.RAN, username, row.label, command, (block,))
