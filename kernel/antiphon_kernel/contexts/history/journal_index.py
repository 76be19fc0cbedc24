"""Indexes for reading the journal block by block without reading it once for each block."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from antiphon_kernel.storage import (
    ChangeRow,
    ContextRow,
    CorruptContextError,
    Journal,
    StoredOp,
)
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.yjs.causal_order import in_causal_order
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, DecodedUpdate, ItemId, Struct, decode_update

SYNC: Final = "sync"
"""The operation of raw updates, which may concern blocks that they are not said to touch."""

NO_BLOCK: Final = 0
"""Stands for an item of no known block."""

_ROOT: Final = "blocks"
_TOUCHES_READ: Final = 1_000
_OPS_READ: Final = 200
_BYTES_READ: Final = 2_000_000


@dataclass(slots=True)
class _Runs:
    """Items of one CRDT client: each run begins at a clock and belongs to one block."""

    starts: array[int] = field(default_factory=lambda: array("I", [0]))
    blocks: array[int] = field(default_factory=lambda: array("I", [NO_BLOCK]))
    end: int = 0

    def add(self, start: int, end: int, block: int) -> None:
        if start > self.end:
            self._append(self.end, NO_BLOCK)
        if end > self.end:
            self._append(max(start, self.end), block)
            self.end = end

    def _append(self, start: int, block: int) -> None:
        if self.blocks[-1] != block:
            self.starts.append(start)
            self.blocks.append(block)

    def within(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """`(start, end, block)` of each run in a range of clocks."""
        at, end = bisect_right(self.starts, start) - 1, min(end, self.end)
        while start < end:
            border = self.starts[at + 1] if at + 1 < len(self.starts) else end
            yield start, min(border, end), self.blocks[at]
            start, at = border, at + 1


class ItemOwners:
    """Maps CRDT items to the numbers of the blocks that they are part of."""

    def __init__(self, number_of: Callable[[str], int]) -> None:
        """
        Args:
            number_of: the number of a block by its id, `NO_BLOCK` for those of no interest.
        """
        self._number_of = number_of
        self._clients: dict[int, _Runs] = {}

    def assign(self, update: DecodedUpdate, block: int) -> None:
        """Record that every item of an update belongs to one block."""
        for struct in update.structs:
            if struct.kind is not ContentKind.SKIP:
                self._add(struct, block)

    def split(self, update: DecodedUpdate) -> dict[int, DecodedUpdate]:
        """Record the items of an update and return its parts by block."""
        structs: dict[int, list[Struct]] = {}
        deletions: dict[int, list[IdRange]] = {}
        for struct in in_causal_order(update.structs):
            if struct.kind is not ContentKind.SKIP:
                block = self._owner(struct)
                self._add(struct, block)
                structs.setdefault(block, []).append(struct)
        for client, start, end in update.deletions:
            if client in self._clients:
                for begin, border, block in self._clients[client].within(start, end):
                    deletions.setdefault(block, []).append(IdRange(client, begin, border))
        return {
            block: DecodedUpdate(tuple(structs.get(block, ())), tuple(deletions.get(block, ())))
            for block in structs.keys() | deletions.keys()
            if block != NO_BLOCK
        }

    def _add(self, struct: Struct, block: int) -> None:
        runs = self._clients.setdefault(struct.client, _Runs())
        runs.add(struct.clock, struct.clock + struct.length, block)

    def _owner(self, struct: Struct) -> int:
        beside = struct.parent or struct.origin or struct.right_origin
        if isinstance(beside, ItemId):
            runs = self._clients.get(beside.client)
            if runs is None:
                return NO_BLOCK
            found = next(runs.within(beside.clock, beside.clock + 1), None)
            return found[2] if found is not None else NO_BLOCK
        if beside == _ROOT and struct.key is not None:
            return self._number_of(struct.key)
        return NO_BLOCK


class JournalIndex:
    """The transactions of one context that concern each block, by the block's number.

    It takes some bytes for each transaction and each block that it touched. Whatever reads the
    journal raises CorruptContextError for a record that cannot be read, AntiphonError
    storage_failed for a journal that cannot.
    """

    def __init__(
        self, journal: Journal, context: ContextRow, number_of: Callable[[str], int]
    ) -> None:
        """
        Args:
            number_of: the number of a block by its id, `NO_BLOCK` if there is none.
        """
        self._journal = journal
        self._context = context
        self._number_of = number_of
        self._owners: ItemOwners | None = None
        self._op_sizes = array("I", [0])
        self.seqs: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
        """The transactions that concern each block, in order."""
        self.sizes: defaultdict[int, int] = defaultdict(int)
        """Bytes of their updates, those of several blocks counted in equal shares."""

    @property
    def is_exact(self) -> bool:
        """Return whether transactions that concern a block without touching it are included."""
        return self._owners is not None

    async def extend(self, upto: int) -> None:
        """Index the transactions on disk up to a `seq`."""
        slices = TimeSlice()
        while (after := len(self._op_sizes) - 1) < upto:
            limit = min(_TOUCHES_READ, upto - after)
            touches = await self._journal.changes(self._context, after, limit=limit)
            if len(touches) < limit:
                raise CorruptContextError(self._context, "a transaction is missing", after + 1)
            self._op_sizes.extend(touch.size for touch in touches)
            unseen = await self._unseen(touches)
            for touch in touches:
                blocks = unseen.get(touch.seq, touch.versions)
                for block in blocks:
                    self.seqs[block].append(touch.seq)
                    self.sizes[block] += touch.size // len(blocks)
            await slices.pause()

    async def make_exact(self) -> None:
        """Index what nobody ever saw too: text written and removed offline touches no block."""
        upto = len(self._op_sizes) - 1
        self._owners = ItemOwners(self._number_of)
        self._op_sizes = array("I", [0])
        self.seqs.clear()
        self.sizes.clear()
        await self.extend(upto)

    async def ops(self, seqs: Iterable[int]) -> AsyncIterator[StoredOp]:
        """Read transactions that have been indexed, in order, a bounded piece at a time."""
        slices, piece, size = TimeSlice(), list[int](), 0
        for seq in chain(sorted(seqs), (None,)):
            if seq is None or len(piece) == _OPS_READ or size > _BYTES_READ:
                for op in await self._journal.ops(self._context, seqs=piece):
                    yield op
                    await slices.pause()
                piece, size = [], 0
            if seq is not None:
                piece.append(seq)
                size += self._op_sizes[seq]

    async def _unseen(self, touches: Sequence[ChangeRow[int]]) -> dict[int, Collection[int]]:
        """The blocks that transactions concern, by `seq`, if the index is to be exact."""
        found: dict[int, Collection[int]] = {}
        if self._owners is None:
            return found
        async for op in self.ops(touch.seq for touch in touches):
            parts = self._owners.split(decode_update(op.update))
            if op.operation == SYNC:
                found[op.seq] = op.versions.keys() | parts.keys()
        return found
