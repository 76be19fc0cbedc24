"""The histories of one context's blocks, read from the journal when first asked for.

While a history is open it follows every commit, so that it is exact at once; those that nobody has
asked for lately are let go.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NoReturn, TypeVar

from antiphon_kernel.contexts.history.journal_index import NO_BLOCK, SYNC, JournalIndex
from antiphon_kernel.contexts.history.replay import (
    DifferentTextError,
    Inherited,
    InheritedAuthors,
    copied_texts,
    history_change,
    inherit,
    text_paths,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.storage import ContextRow, Journal, StoredOp
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.yjs.update import DecodedUpdate, decode_update

_KEPT: Final = 32
"""Histories that stay open when nobody asks for them."""

_BATCH_BLOCKS: Final = 500
_BATCH_OPS: Final = 10_000
_BATCH_BYTES: Final = 2_000_000
"""Blocks, transactions and bytes of them that are held at a time when many blocks are read."""

T = TypeVar("T")


class HistoryCache:
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
        self._authors = InheritedAuthors(journal, document.schema)
        self._seq = seq
        self._number_of = number_of
        self._settled = settled
        self._open: OrderedDict[str, BlockHistory] = OrderedDict()
        self._collecting: list[list[StoredOp]] = []
        self._reading_many = asyncio.Lock()
        """Held while a batch is read: however many ask, they take up the event loop one by one."""

    def close(self, refuse: Callable[..., NoReturn]) -> None:
        """Let go of every history; whoever asks for one calls `refuse`."""
        for history in self._open.values():
            history.release()
        self._open.clear()
        self._seq = self._number_of = self._settled = refuse

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

    async def open(
        self, blocks: Sequence[str], known: Inherited | None = None
    ) -> list[BlockHistory]:
        """Return histories that are up to date with the document until the next await.

        `known`: copied texts of the blocks that need not be read again.
        """
        while (histories := self.opened(blocks)) is None:
            missing = [one for one in dict.fromkeys(blocks) if one not in self._open]
            await self._read(missing, known or {})
        while len(self._open) > max(_KEPT, len(set(blocks))):
            self._open.popitem(last=False)
        return histories

    async def read_each(
        self, blocks: Sequence[str], read: Callable[[BlockHistory], T]
    ) -> AsyncIterator[list[T]]:
        """Call `read` with the up-to-date history of each block; yield the results in batches.

        The cost is linear in the number of blocks and transactions, and only the histories of one
        batch are in memory. None is open and nothing is collected while the caller holds a batch.
        """
        index = JournalIndex(
            self._journal,
            self._context,
            lambda block: self._number_of(block) if block in self._document else NO_BLOCK,
        )
        at = 0
        while at < len(blocks):
            async with self._reading_many, self._collected() as (begun, collected):
                await index.extend(begun)
                batch = self._next_batch(index, blocks, at)
                results = await self._read_batch(index, batch, begun, collected, read)
                if results is None:
                    await index.make_exact(begun)
                    continue
            yield results
            at += len(batch)

    def _next_batch(self, index: JournalIndex, blocks: Sequence[str], at: int) -> Sequence[str]:
        ops = size = 0
        end = at
        while end < min(len(blocks), at + _BATCH_BLOCKS):
            number = self._number_of(blocks[end])
            ops += len(index.seqs[number])
            size += index.sizes[number]
            if end > at and (ops > _BATCH_OPS or size > _BATCH_BYTES):
                break
            end += 1
        return blocks[at:end]

    async def _read_batch(
        self,
        index: JournalIndex,
        blocks: Sequence[str],
        begun: int,
        collected: Sequence[StoredOp],
        read: Callable[[BlockHistory], T],
    ) -> list[T] | None:
        """The results for the histories of blocks; None if the index must be exact for that."""
        numbers, exact = {self._number_of(one): one for one in blocks}, index.is_exact
        try:
            replay = await self._authors.replay(
                self._context, numbers, begun, exact=exact, index=index
            )
        except DifferentTextError:
            if exact:
                raise
            return None
        slices, followed, results = TimeSlice(), 0, list[T]()
        try:
            for history in replay.histories.values():
                await slices.pause()
                for op in collected[followed:]:
                    replay.follow(op)
                followed = len(collected)
                # From here to the next pause nothing comes between.
                if not self._same_result(history):
                    if not exact:
                        return None
                    raise _difference(history.block)
                results.append(read(history))
        finally:
            for history in replay.histories.values():
                history.release()
        return results

    def follow(self, op: Callable[[], StoredOp]) -> None:
        """Follow a transaction of the document, which `op` makes if anybody wants to know."""
        if not self._open and not self._collecting:
            return
        new = op()
        for collected in self._collecting:
            collected.append(new)
        update: DecodedUpdate | None = None
        for block, history in list(self._open.items()):
            version = new.versions.get(self._number_of(block))
            if version is not None and len(new.versions) > _KEPT:
                del self._open[block]  # to read so many together again costs less
                continue
            if version is not None or new.operation == SYNC:
                update = update or decode_update(new.update)
                history.follow(history_change(new, update, version or history.version))
                key = self._number_of(block), version or 0
                inherit(history, copied_texts(new.inherited).get(key, {}))
            if not self._agrees(history, history.length, self._document.length):
                del self._open[block]  # an update brought more than it was said to touch

    async def _read(self, blocks: Sequence[str], known: Inherited) -> None:
        """Open histories; all transactions are read if those of the blocks do not explain them.

        What nobody ever saw (written and removed offline) is in no list of touched blocks, but
        later text may stand beside it.
        """
        numbers, other = {self._number_of(one): one for one in blocks}, list[BlockHistory]()
        for exact in (False, True):
            async with self._collected() as (begun, collected):
                try:
                    copied = {} if exact else known
                    replay = await self._authors.replay(
                        self._context, numbers, begun, exact=exact, known=copied
                    )
                    for op in collected:
                        replay.follow(op)
                except DifferentTextError:
                    if exact:
                        raise
                    continue
            histories = replay.histories.values()
            other = [one for one in histories if not self._same_result(one)]
            if not other:
                self._open.update((one.block, one) for one in histories)
                return
        raise _difference(other[0].block)

    def _same_result(self, history: BlockHistory) -> bool:
        return self._agrees(history, history.text, self._document.peek_text)

    def _agrees(
        self,
        history: BlockHistory,
        ours: Callable[[str | None], object],
        theirs: Callable[[str, str | None], object],
    ) -> bool:
        paths = text_paths(self._document.schema(history.block))
        return all(ours(path) == theirs(history.block, path) for path in paths)

    @asynccontextmanager
    async def _collected(self) -> AsyncIterator[tuple[int, list[StoredOp]]]:
        """Yield the last `seq` on disk, and a list that collects what is committed after it."""
        begun, collected = self._seq(), list[StoredOp]()
        self._collecting.append(collected)
        try:
            await self._settled()
            yield begun, collected
        finally:
            # Not the first that is equal: others may be reading too.
            self._collecting = [one for one in self._collecting if one is not collected]


def _difference(block: str) -> RuntimeError:
    return RuntimeError(f"the journal and the document differ in block {block}")
