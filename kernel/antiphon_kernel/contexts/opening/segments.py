"""How the state of a context is cut and joined.

A state is a list of segments, oldest first; whoever needs less takes the last ones. The kernel
opens a long context with the last ones, and a replica that shows its end begins with them.

Segments meet at a point of the history: what was written before it is left out. The engine leaves
out what builds on that, too, and a block that was made later builds on nothing before the point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import takewhile
from typing import Final

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import Cut, Snapshot
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.yjs.id_set import decode_state_vector, encode_state_vector
from antiphon_kernel.yjs.update import ContentKind, Struct, first_clocks
from antiphon_kernel.yjs.update_writer import encode_update

_OPS_READ: Final = 64
_MOST_OPS: Final = 100_000
"""Transactions that are read for the point; farther back, nothing is left out."""

_ORDER: Final = "order"


def omitted_segment(cut: Cut) -> bytes:
    """Return an update that stands for all that was written up to a point."""
    clocks = cut.clocks.items()
    passed = (Struct(client, 0, clock, ContentKind.GC) for client, clock in clocks if clock)
    return encode_update(passed, ())


async def join(snapshot: Snapshot, client_id: int) -> Document:
    """Return a document that has read the segments of a state, and what stands for those left out.

    Raises ValueError if it is not what it says it is.
    """
    omitted = (omitted_segment(snapshot.cut),) if snapshot.cut is not None else ()
    document = Document(client_id)
    try:
        for segment in (*omitted, *snapshot.state):
            document.apply_part(segment)
            await asyncio.sleep(0)
        read = decode_state_vector(document.state_vector())
        if read != decode_state_vector(snapshot.state_vector):
            raise ValueError(f"it holds another state than that of seq {snapshot.seq}")
    except ValueError:
        document.close()
        raise
    return document


async def cut_state(context: Context, count: int) -> Snapshot | None:
    """Return the last segment of a state, to open the context without the others.

    It has `count` blocks, unless the context lacks others already. None if nothing is left out.
    """
    cut = context.cut or await RecentBlocks(context).cut(count)
    if not cut.clocks:
        return None
    document, number, complete = context.document, context.blocks.number, cut.complete
    if context.cut is None:
        recent = takewhile(lambda one: number(one) > cut.omitted, reversed(document.block_ids()))
        complete = sum(1 for _ in recent)
    state = document.update_since(encode_state_vector(cut.clocks))
    stated, blocks = document.stated_values(), context.block_count
    cut = Cut(cut.omitted, cut.clocks, *stated, blocks=blocks, complete=complete)
    return Snapshot(context.seq, document.state_vector(), (state,), cut=cut)


class RecentBlocks:
    """The last blocks of one context."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sought = -1
        """Number of the block before which a point was looked for last."""
        self._omitted = 0
        """Number of the last block that was made before that point; 0 if none was found."""
        self._clocks: Mapping[int, int] = {}
        """The state vector at that point."""

    async def cut(self, count: int) -> Cut:
        """Return the point where a state of the last `count` blocks, and all open ones, begins.

        Open are drafts, and calls and texts of programs that are not finished. Nothing is left out
        unless that is most.
        """
        context = self._context
        while True:
            oldest = self._oldest(count)
            if oldest and not self._omitted < oldest <= self._sought + count:
                self._omitted, self._clocks = await self._find(oldest)
                self._sought = oldest
            is_most = oldest and self._omitted >= context.block_count // 2
            omitted, clocks = (self._omitted, self._clocks) if is_most else (0, {})
            await context.wait_persisted()
            if not omitted or omitted < self._oldest(count):  # no older block was moved meanwhile
                return Cut(omitted, clocks, *context.document.stated_values())

    def outdates(self, cut: Cut, applied: Applied) -> bool:
        """Return whether a replica that began at a cut cannot see a change that was made.

        That is so of a block that it lacks and that was moved, and of a new value in ``meta`` in
        place of one that was left out. Members are added only.
        """
        if not cut.omitted:
            return False
        if not applied.versions:
            return self._context.document.stated_values()[0] != cut.meta
        number = self._context.blocks.number
        return any(
            _ORDER in header.fields and number(header.block) <= cut.omitted
            for change in applied.changes
            for header in change.headers
        )

    def is_current(self, cut: Cut, count: int) -> bool:
        """Return whether a replica that began at a cut has the last `count` blocks, as they are."""
        meta, _ = self._context.document.stated_values()
        is_known = self._context.holds_last(count)
        return is_known and meta == cut.meta and self._lowest(count) > cut.omitted

    def _lowest(self, count: int) -> int:
        """Return the lowest number of the last blocks and of all open ones."""
        document = self._context.document
        due = (
            block
            for block in document.open_blocks()
            if document.is_draft(block) or document.header(block).is_written_by_program
        )
        last = document.block_ids()[-count:]
        return min(map(self._context.blocks.number, (*last, *due)), default=0)

    def _oldest(self, count: int) -> int:
        """Return the number of the oldest of the last blocks; 0 if not much more is before it."""
        total = self._context.block_count
        oldest = self._lowest(count) if total > 2 * count else 0
        return oldest if oldest > total // 2 else 0

    async def _find(self, oldest: int) -> tuple[int, Mapping[int, int]]:
        """Return the point before a block: the number of the last one before it, and the clocks."""
        context = self._context
        clocks = decode_state_vector(context.document.state_vector())
        last = end = context.seq
        await context.wait_persisted()
        slices = TimeSlice()
        while end > max(0, last - _MOST_OPS):
            after = max(0, end - _OPS_READ)
            for op in reversed(await context.journal.ops(after, end)):
                clocks |= first_clocks(op.update)
                if op.versions.get(oldest) == 1:
                    made = (number for number, version in op.versions.items() if version == 1)
                    return min(made) - 1, clocks
                await slices.pause()
            end = after
        return 0, {}
