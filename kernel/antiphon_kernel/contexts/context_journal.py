"""Changes of one context that are on disk."""

from __future__ import annotations

from antiphon_kernel.contexts.block_rows import BlockRows
from antiphon_kernel.storage import (
    BlockChangeRow,
    ContextChangeRow,
    ContextRow,
    Journal,
    StoredOp,
)


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

    async def changes_of(self, block: str) -> list[BlockChangeRow]:
        """Return every change of a block, in order."""
        return await self._journal.changes_of(self._row, self._blocks.number(block))

    async def changes_after(
        self, seq: int, limit: int
    ) -> list[tuple[ContextChangeRow, dict[str, int]]]:
        """Return the first changes after a version, in order.

        With each comes, by the id of each block that changed, the version that it made.
        """
        found = await self._journal.changes(self._row, seq, limit=limit)
        ids = {row.number: row.id for row in self._blocks}
        return [
            (one, {ids[number]: to for number, to in one.versions.items() if number in ids})
            for one in found
        ]

    async def changes_since(self, seq: int) -> dict[str, list[BlockChangeRow]]:
        """Return every change after a version of the context, by block."""
        found = await self._journal.changes_since(self._row, seq)
        return {row.id: found[row.number] for row in self._blocks if row.number in found}
