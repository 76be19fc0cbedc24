"""The journal of one context: its changes that are on disk, numbers and versions of its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from antiphon_kernel.storage import (
    BlockRow,
    ChangeRow,
    ContextRow,
    Journal,
    StoredOp,
)
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId, ContextId, PrincipalId


class BlockRows:
    """The journal's row of each block that a context holds, with what is on its way to disk."""

    def __init__(self) -> None:
        self._rows: dict[str, BlockRow] = {}
        self.persisted: dict[str, int] = {}
        """The last version of each block that is on disk."""

    def __iter__(self) -> Iterator[BlockRow]:
        return iter(self._rows.values())

    def add_stored(self, rows: Sequence[BlockRow]) -> None:
        """Add rows as they are on disk; those that are known already are newer."""
        self._rows = {row.id: row for row in rows} | self._rows
        self.persisted = {row.id: row.version for row in rows} | self.persisted

    def clear(self) -> None:
        self._rows.clear()
        self.persisted.clear()

    def number(self, block: str) -> int:
        """Return the journal's number of a block. Raises KeyError."""
        return self._rows[block].number

    def version(self, block: str) -> int:
        """Return the change count of a block; 1 at creation, 0 if there is no such block."""
        row = self._rows.get(block)
        return row.version if row is not None else 0

    def advance(self, block: str) -> BlockRow:
        """Count a change of a block, which may be a new one; return its row."""
        row = self._rows.get(block)
        if row is None:
            row = BlockRow(len(self._rows) + 1, block, 1)
        else:
            row = BlockRow(row.number, block, row.version + 1)
        self._rows[block] = row
        return row


class BlockIds:
    """Numbers for new blocks of each principal, from behind the highest that it has used."""

    def __init__(self, context: ContextId, blocks: Iterable[str]) -> None:
        self._context = context
        self._highest: dict[str, int] = {}
        for block in blocks:
            _, principal, number = block.split(".")
            seq = int(number)
            if self._highest.get(principal, 0) < seq < DRAFT_SEQ_MIN:
                self._highest[principal] = seq

    def next(self, principal: PrincipalId) -> BlockId:
        """A fresh id for a block of this principal's."""
        self._highest[principal] = number = self._highest.get(principal, 0) + 1
        return BlockId(self._context, principal, number)


class ContextJournal:
    """The journal of one context. Reading it raises AntiphonError storage_failed."""

    def __init__(self, journal: Journal, row: ContextRow, blocks: BlockRows) -> None:
        self._journal = journal
        self._row = row
        self._blocks = blocks

    @property
    def is_writable(self) -> bool:
        """False once the kernel cannot save anything more."""
        return self._journal.lost is None

    async def ops(self, after: int, upto: int) -> list[StoredOp]:
        """Return the transactions behind `after` up to `upto`, in order."""
        return await self._journal.ops(self._row, after=after, upto=upto)

    async def changes(
        self, after: int = 0, limit: int = -1, *, block: str | None = None
    ) -> list[ChangeRow[str]]:
        """Return the first changes after a version, in order; all if `limit` is -1.

        If `block` is named, those that touched it, with its versions only.
        """
        number = self._blocks.number(block) if block is not None else None
        found = await self._journal.changes(self._row, after, limit=limit, block=number)
        if number is not None and block is not None:
            ids = {number: block}
        else:
            ids = {row.number: row.id for row in self._blocks}
        return [
            ChangeRow(
                one.seq,
                {ids[touched]: to for touched, to in one.versions.items() if touched in ids},
                *(one.time, one.principal, one.operation, one.size),
            )
            for one in found
        ]

    async def changes_since(self, seq: int) -> dict[str, list[ChangeRow[str]]]:
        """Return every change after a version of the context, by block."""
        found: dict[str, list[ChangeRow[str]]] = {}
        for change in await self.changes(seq):
            for block in change.versions:
                found.setdefault(block, []).append(change)
        return found
