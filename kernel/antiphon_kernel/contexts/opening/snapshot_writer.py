"""Writing of a context's snapshot as it grows, and of its last blocks at the end."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from antiphon_kernel.contexts.commit_types import Broadcast
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.opening.segments import cut_state
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import Journal, Snapshot, StoredContext
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.errors import AntiphonError

_STATE_BYTES: Final = 1_000
"""Bytes of a snapshot for each transaction that it saves reading."""

_PART_BYTES: Final = 8_000_000
"""Bytes of a state that is stored as one update: the engine takes it in in 0.1 to 0.2 s."""

_log = logging.getLogger(__name__)


class SnapshotWriter:
    """Watches one open context and writes its snapshots."""

    def __init__(
        self, journal: Journal, context: Context, limits: Limits, stored: StoredContext
    ) -> None:
        self._journal = journal
        self._context = context
        self._limits = limits
        self._bytes = 0
        self._size = 0
        self._tasks = BackgroundTasks(_log)
        self._writing: asyncio.Task[bool] | None = None
        self.count_from(stored)
        self._unsubscribe = context.committed.listen(self._committed)
        if self._is_due():
            self._start()

    def count_from(self, stored: StoredContext) -> None:
        """Count from the snapshot on with which the context has been read."""
        self._transactions = len(stored.updates)
        self._has_index = bool(stored.item_index)

    def _committed(self, broadcast: Broadcast) -> None:
        self._transactions += 1
        self._bytes += len(broadcast.update)
        if self._is_due() and (self._writing is None or self._writing.done()):
            self._start()

    def _is_due(self) -> bool:
        limits = self._limits
        if self._context.is_partial:
            return False
        # In proportion to what there is: a long document is not written again for every page.
        enough = max(limits.snapshot_bytes, self._size // 2)
        many = max(limits.snapshot_transactions, self._size // _STATE_BYTES)
        return self._transactions >= many or self._bytes >= enough

    def _start(self, *, with_index: bool = False) -> asyncio.Task[bool]:
        name = f"snapshot of {self._context.label}"
        self._writing = self._tasks.start(self._capture(with_index=with_index), name)
        return self._writing

    async def _capture(self, *, with_index: bool) -> bool:
        """Write a snapshot; return whether it is on disk."""
        context, document = self._context, self._context.document
        begun, parts = context.seq, list[bytes]()
        for part in document.parts_since(None, _PART_BYTES):
            parts.append(part)
            await asyncio.sleep(0)
        item_index = await context.structure.encode() if with_index else None
        # From here to the next await nothing may come between.
        seq, transactions, size = context.seq, self._transactions, self._bytes
        if seq != begun:
            parts = [document.update_since()]
        snapshot = Snapshot(seq, document.state_vector(), tuple(parts), item_index or b"")
        try:
            await context.wait_persisted()
            await self._journal.snapshots.write(context.row, snapshot)
        except AntiphonError as error:
            _log.warning("no snapshot of context %s: %s", context.label, error)
            return False
        self._has_index = bool(snapshot.item_index)
        self._transactions -= transactions
        self._bytes -= size
        self._size = sum(map(len, parts))
        return True

    async def write_last(self, recent_blocks: int = 0) -> bool:
        """Write what opening the context would otherwise take noticeably longer without.

        That is a snapshot, and the last blocks, if there are many more: at least `recent_blocks`,
        if that is more than ordinarily. Of a partial context there is no snapshot.

        Returns whether all that was due is on disk; else the reason is logged.
        """
        if self._writing is not None:
            await asyncio.wait({self._writing})
        is_stored = True
        try:
            await self._write_recent(recent_blocks)
        except AntiphonError as error:
            _log.warning("no last blocks of context %s: %s", self._context.label, error)
            is_stored = False
        if self._context.is_partial:
            return is_stored
        structure = self._context.structure
        is_due = self._transactions >= self._limits.snapshot_transactions_on_close
        if is_due or (structure.ready and not self._has_index):
            if self._writing is not None:  # others may write meanwhile
                await asyncio.wait({self._writing})
            # There is time now to keep what was long to read.
            is_stored = await self._start(with_index=True) and is_stored
        return is_stored

    async def _write_recent(self, at_least: int) -> None:
        """Write the last blocks if there are many more and those on disk are not as they are."""
        context, states = self._context, self._journal.recent_states
        count = max(at_least, self._limits.recent_blocks)
        if context.block_count <= 2 * count:
            return
        stored = await states.read(context.row) if count == self._limits.recent_blocks else None
        if stored is not None and stored.seq == context.seq:
            return
        recent = await cut_state(context, count)
        if recent is not None:
            await context.wait_persisted()
            await states.write(context.row, recent)

    def cancel(self) -> None:
        """Stop at once: the context is closed, or has failed and says nothing any more."""
        self._unsubscribe()
        self._unsubscribe = lambda: None  # the one before leads back to this object
        if self._writing is not None:
            self._writing.cancel()
