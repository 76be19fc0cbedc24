"""Indexes for reading the journal block by block without reading it once for each block."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from typing import Final

from antiphon_kernel.storage import (
    ChangeRow,
    ContextRow,
    CorruptContextError,
    Journal,
    StoredOp,
)
from antiphon_kernel.tasks import TimeSlice, portions
from antiphon_kernel.yjs.causal_order import in_causal_order
from antiphon_kernel.yjs.id_set import IdRange, ItemRuns
from antiphon_kernel.yjs.update import ContentKind, DecodedUpdate, ItemId, Struct, decode_update

SYNC: Final = "sync"
"""The operation of raw updates, which may concern blocks that they are not said to touch."""

NO_BLOCK: Final = 0
"""Stands for an item of no known block."""

_ROOT: Final = "blocks"
_TOUCHES_READ: Final = 1_000
_OPS_READ: Final = 200
_BYTES_READ: Final = 2_000_000


class ItemOwners:
    """Maps CRDT items to the numbers of the blocks that they are part of."""

    def __init__(self, number_of: Callable[[str], int]) -> None:
        """`number_of`: the number of a block by its id, `NO_BLOCK` for those of no interest."""
        self._number_of = number_of
        self._runs = ItemRuns()

    def split(self, update: DecodedUpdate) -> dict[int, DecodedUpdate]:
        """Record the items of an update and return its parts by block."""
        structs: dict[int, list[Struct]] = {}
        deletions: dict[int, list[IdRange]] = {}
        for struct in in_causal_order(update.structs):
            if struct.kind is not ContentKind.SKIP:
                block = self._owner(struct)
                self._add(struct, block)
                structs.setdefault(block, []).append(struct)
        for ids in update.deletions:
            for part, block in self._runs.within(ids):
                deletions.setdefault(block, []).append(part)
        return {
            block: DecodedUpdate(tuple(structs.get(block, ())), tuple(deletions.get(block, ())))
            for block in structs.keys() | deletions.keys()
            if block != NO_BLOCK
        }

    def _add(self, struct: Struct, block: int) -> None:
        ids = IdRange(struct.client, struct.clock, struct.clock + struct.length)
        self._runs.add(ids, block)

    def _owner(self, struct: Struct) -> int:
        beside = struct.parent or struct.origin or struct.right_origin
        if isinstance(beside, ItemId):
            ids = IdRange(beside.client, beside.clock, beside.clock + 1)
            return next(self._runs.within(ids))[1]
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
        """`number_of`: the number of a block by its id, `NO_BLOCK` if there is none."""
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

    async def make_exact(self, upto: int) -> None:
        """Index what nobody ever saw too: text written and removed offline touches no block."""
        self._owners = ItemOwners(self._number_of)
        self._op_sizes = array("I", [0])
        self.seqs.clear()
        self.sizes.clear()
        await self.extend(upto)

    async def ops(self, seqs: Iterable[int]) -> AsyncIterator[StoredOp]:
        """Read transactions that have been indexed, in order, a bounded piece at a time."""
        slices, size_of = TimeSlice(), self._op_sizes.__getitem__
        for piece in portions(sorted(seqs), size_of, size=_BYTES_READ, count=_OPS_READ):
            for op in await self._journal.ops(self._context, seqs=piece):
                yield op
                await slices.pause()

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
