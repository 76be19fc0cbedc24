"""The histories of one context's blocks, read from the journal when first asked for.

While a history is open it follows every commit, so that it is exact at once; those that nobody has
asked for lately are let go.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory, Change, Run, Stamp
from antiphon_kernel.document.history.units import Turn
from antiphon_kernel.document.schema import each_part, is_counter, is_text, path_of
from antiphon_kernel.journal.journal import Journal
from antiphon_kernel.journal.rows import ContextRow, InheritedRun, StoredOp
from antiphon_kernel.wire.update import decode_update

_KEPT: Final = 32
"""Histories that stay open when nobody asks for them."""

_FOLLOWED_A_TURN: Final = 200
"""Transactions read before others get their turn."""


class Histories:
    """The open histories of one context. Belongs to one event loop."""

    def __init__(
        self,
        journal: Journal,
        context: ContextRow,
        document: Document,
        *,
        seq: Callable[[], int],
        number_of: Callable[[str], int],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        """
        Args:
            seq: the number of the last transaction that has been applied.
            number_of: the journal's number of a block.
            settled: waits until everything that has been applied is on disk.
        """
        self._journal = journal
        self._context = context
        self._document = document
        self._seq = seq
        self._number_of = number_of
        self._settled = settled
        self._open: OrderedDict[str, BlockHistory] = OrderedDict()
        self._collecting: list[list[StoredOp]] = []

    def opened(self, blocks: Sequence[str]) -> list[BlockHistory] | None:
        """Histories that are up to date with the document; None if one is not open."""
        found: list[BlockHistory] = []
        for block in blocks:
            history = self._open.get(block)
            if history is None:
                return None
            self._open.move_to_end(block)
            found.append(history)
        return found

    async def open(self, blocks: Sequence[str]) -> list[BlockHistory]:
        """Histories that are up to date with the document until the next await.

        Raises:
            AntiphonError: storage_failed.
        """
        while (histories := self.opened(blocks)) is None:
            for block in blocks:
                if block not in self._open:
                    await self._read(block)
        while len(self._open) > max(_KEPT, len(set(blocks))):
            self._open.popitem(last=False)
        return histories

    def follow(self, op: Callable[[], StoredOp]) -> None:
        """A transaction has been applied to the document.

        Args:
            op: makes it, if anybody wants to know.
        """
        if not self._open and not self._collecting:
            return
        new = op()
        for collected in self._collecting:
            collected.append(new)
        for block, history in list(self._open.items()):
            self._follow(history, [new])
            if not self._agrees(history, history.length, self._document.length):
                del self._open[block]  # an update brought more than it was said to touch

    async def _read(self, block: str) -> None:
        history = await self._replay(block, self._number_of(block))
        if not self._reads_alike(history):
            # What nobody ever saw (written and removed offline) is in no list of touched blocks,
            # but later text may stand beside it.
            history = await self._replay(block, None)
        if not self._reads_alike(history):
            raise RuntimeError(f"the journal and the document differ in block {block}")
        self._open[block] = history

    def _reads_alike(self, history: BlockHistory) -> bool:
        return self._agrees(history, history.text, self._document.text)

    def _agrees(
        self,
        history: BlockHistory,
        ours: Callable[[str | None], object],
        theirs: Callable[[str, str | None], object],
    ) -> bool:
        """Whether history and document say the same of each text."""
        parts = each_part(self._document.schema(history.block))
        texts = [path_of(names) for names, part in parts if is_text(part)]
        return all(ours(path) == theirs(history.block, path) for path in texts)

    async def _replay(self, block: str, number: int | None) -> BlockHistory:
        """Read what is on disk, then what has been committed meanwhile."""
        parts = each_part(self._document.schema(block))
        history = BlockHistory(block, [names for names, part in parts if is_counter(part)])
        begun, collected = self._seq(), list[StoredOp]()
        self._collecting.append(collected)
        try:
            await self._settled()
            ops = await self._journal.ops_upto(self._context, begun, number)
            here = self._number_of(block)
            inherited = (await self._journal.inherited(self._context, here)).get(here, {})
            if inherited:
                copied = next(at for at, op in enumerate(ops, 1) if op.versions.get(here) == 1)
                self._follow(history, ops[:copied])
                inherit(history, inherited)
                del ops[:copied]
            for at in range(0, len(ops), _FOLLOWED_A_TURN):
                self._follow(history, ops[at : at + _FOLLOWED_A_TURN])
                await asyncio.sleep(0)
            self._follow(history, collected)
        finally:
            # Not the first that is equal: others may be reading too.
            self._collecting = [one for one in self._collecting if one is not collected]
        return history

    def _follow(self, history: BlockHistory, ops: Iterable[StoredOp]) -> None:
        number = self._number_of(history.block)
        for op in ops:
            version = op.versions.get(number)
            if version is None and op.operation != "sync":
                continue
            turn = Turn(op.operation) if op.unit and op.operation in tuple(Turn) else None
            history.follow(
                Change(
                    decode_update(op.update),
                    Stamp(op.principal, version or history.version, op.time),
                    op.unit,
                    turn,
                    op.revivals,
                )
            )


def inherit(history: BlockHistory, inherited: Mapping[str | None, Sequence[InheritedRun]]) -> None:
    """Name those who wrote a copied block before; its history must stand at the copy.

    Args:
        inherited: the runs of each of its texts, by section.
    """
    for section, runs in inherited.items():
        stamps = (
            Run(run.end - run.start, Stamp(run.principal, run.version, run.time)) for run in runs
        )
        history.inherit(section, stamps)
