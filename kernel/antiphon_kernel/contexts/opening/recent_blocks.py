"""The state of a context without its oldest blocks, for replicas that show its end.

It is cut at a point of the history: what was written before it is left out. The engine leaves out
what builds on that, too, and a block that was made later builds on nothing before the point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.opening.loader import encode_beginning
from antiphon_kernel.storage import StoredRecentState
from antiphon_kernel.time_slice import TimeSlice
from antiphon_kernel.yjs.state_vector import decode_state_vector, encode_state_vector
from antiphon_kernel.yjs.update import first_clocks

_OPS_READ: Final = 64
_MOST_OPS: Final = 100_000
"""Transactions that are read for the point; farther back, nothing is left out."""

_ORDER: Final = "order"


class _HistoryPoint(NamedTuple):
    """A point in the history of a context."""

    clocks: Mapping[int, int]
    """The state vector at this point."""
    oldest: int
    """The journal's number of the first block that was made behind it; 0 if there is no point."""
    sought: int
    """The number of the block that it was looked for."""


@dataclass(frozen=True, slots=True)
class RecentState:
    """The state that a replica begins with."""

    omitted: int
    """Number of the blocks that are left out: those with the numbers up to this."""
    clocks: Mapping[int, int]
    """The state vector up to which all is left out; empty if nothing is."""
    meta: Mapping[str, str]
    members: Mapping[str, str]
    """The root maps of these names, which may be left out."""

    def beginning(self) -> bytes:
        """Return the update that the rest of the state, since `clocks`, builds on."""
        return encode_beginning(self.clocks)


class RecentBlocks:
    """The last blocks of one context."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: _HistoryPoint | None = None

    async def state(self, count: int) -> RecentState:
        """Return the state that a replica of the last blocks, and of all open ones, begins with.

        Open are drafts, and calls and texts of programs that are not finished.

        Nothing is left out unless that is most.

        Args:
            count: of blocks, in document order.
        """
        while point := await self._point(count):
            await self._context.wait_persisted()
            if point.oldest <= self._oldest(count):  # else an older block was moved meanwhile
                return RecentState(
                    point.oldest - 1, point.clocks, *self._context.document.stated_values()
                )
        await self._context.wait_persisted()
        return RecentState(0, {}, *self._context.document.stated_values())

    def outdates(self, state: RecentState, applied: Applied) -> bool:
        """Return whether a replica that began with a state cannot see a change that was made.

        That is so of a block that it lacks and that was moved, and of a new value in ``meta`` in
        place of one that was left out. Members are added only.
        """
        if not state.omitted:
            return False
        if not applied.versions:
            return self._context.document.stated_values()[0] != state.meta
        number = self._context.blocks.number
        return any(
            _ORDER in header.fields and number(header.block) <= state.omitted
            for change in applied.changes
            for header in change.headers
        )

    def is_current(self, state: RecentState, count: int) -> bool:
        """Return whether a replica that began with a state some time ago lacks nothing it shows.

        Args:
            count: of the last blocks, in document order, that it shows.
        """
        meta, _ = self._context.document.stated_values()
        is_known = self._context.holds_last(count)
        return is_known and meta == state.meta and self._lowest(count) > state.omitted

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

    async def _point(self, count: int) -> _HistoryPoint | None:
        """Return the point before the last blocks; None if not much more is before it."""
        oldest = self._oldest(count)
        if not oldest:
            return None
        known = self._known
        if known is None or not known.oldest <= oldest <= known.sought + count:
            known = self._known = await self._find(oldest)
        return known if known.oldest > self._context.block_count // 2 else None

    async def _find(self, oldest: int) -> _HistoryPoint:
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
                    return _HistoryPoint(clocks, min(made), oldest)
                await slices.pause()
            end = after
        return _HistoryPoint({}, 0, oldest)


async def read_recent(context: Context, count: int) -> StoredRecentState | None:
    """Return the last blocks as they are stored, to open the context without the others.

    None if nothing would be left out.
    """
    cut = context.cut or await RecentBlocks(context).state(count)
    omitted, clocks = cut.omitted, cut.clocks
    if not clocks:
        return None
    document, number = context.document, context.blocks.number
    if context.cut is not None:
        complete = context.cut.complete
    else:
        last = takewhile(lambda block: number(block) > omitted, reversed(document.block_ids()))
        complete = sum(1 for _ in last)
    return StoredRecentState(
        context.seq,
        context.block_count,
        omitted,
        complete,
        clocks,
        decode_state_vector(document.state_vector()),
        *document.stated_values(),
        document.update_since(encode_state_vector(clocks)),
    )
