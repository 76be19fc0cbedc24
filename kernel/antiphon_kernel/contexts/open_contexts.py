"""The contexts that are open: from when they are first asked for until the kernel closes."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator

from antiphon_kernel.access import WriteGuard
from antiphon_kernel.contexts.block_owners import BlockOwners
from antiphon_kernel.contexts.context import Context, Submission
from antiphon_kernel.contexts.context_registry import ContextRegistry
from antiphon_kernel.contexts.loader import open_document
from antiphon_kernel.contexts.page import ContextPage, stored_page
from antiphon_kernel.contexts.quarantine import Quarantine
from antiphon_kernel.contexts.snapshot_writer import SnapshotWriter
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import ContextRow, CorruptContextError, Journal
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import ContextId, IdSource, SessionId
from antiphon_kernel.types.signal import Signal

_log = logging.getLogger(__name__)


class OpenContexts:
    """Every open context, with what watches it.

    What waits for the journal raises AntiphonError storage_failed.
    """

    def __init__(
        self,
        journal: Journal,
        directory: ContextRegistry,
        quarantine: Quarantine,
        writers: BlockOwners,
        opened: Signal[Context],
        submissions: Signal[Submission],
        guard: WriteGuard,
        clock: Clock,
        ids: IdSource,
        limits: Limits,
    ) -> None:
        self._journal = journal
        self._directory = directory
        self._quarantine = quarantine
        self._writers = writers
        self._opened = opened
        self._submissions = submissions
        self._guard = guard
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._open: dict[ContextId, Context] = {}
        self._snapshots: dict[ContextId, SnapshotWriter] = {}
        self._lease_timer: asyncio.TimerHandle | None = None
        self._opening: defaultdict[ContextId, asyncio.Lock] = defaultdict(asyncio.Lock)

    def get(self, context: ContextId) -> Context | None:
        """None if it is not open."""
        return self._open.get(context)

    def __iter__(self) -> Iterator[Context]:
        return iter(tuple(self._open.values()))

    async def open(self, context: ContextId) -> Context:
        """A context of the directory, opened if it is not yet."""
        async with self._opening[context]:
            return self._open.get(context) or await self._load(self._directory[context])

    async def stored_page(self, context: ContextId) -> ContextPage | None:
        """The last page of a context that is not open; None if it is, or has changed since.

        Raises:
            CorruptContextError: if the context is known to be damaged.
        """
        if context in self._open:
            return None
        self._quarantine.raise_if_quarantined(context)
        return await stored_page(self._journal, self._directory[context])

    async def _load(self, row: ContextRow) -> Context:
        self._quarantine.raise_if_quarantined(row.id)
        try:
            stored, document = await open_document(self._journal, row, self._ids.client_id())
        except CorruptContextError as error:
            self._quarantine.add(row.id, error)
            raise
        context = Context(stored, document, self._journal, self._clock, self._limits, self._guard)
        context.failed.listen(lambda error: self._drop(context, error))
        context.submitted.listen(self._submissions.notify)
        self._open[row.id] = context
        self._snapshots[row.id] = SnapshotWriter(
            self._journal,
            row,
            context,
            self._limits,
            behind=len(stored.updates),
            has_index=bool(stored.item_index),
        )
        self._writers.watch(context)
        self._opened.notify(context)
        return context

    def _drop(self, context: Context, error: AntiphonError) -> None:
        _log.error("context %s is closed and will be read again: %s", context.label, error)
        self._open.pop(context.id, None)
        snapshots = self._snapshots.pop(context.id, None)
        if snapshots is not None:
            snapshots.cancel()
        # Streams into it have lost text: their blocks must not go on as if nothing had happened.
        self._writers.forget(context.id)

    async def end_session(self, session: SessionId, *, leaves_leases: bool) -> None:
        """Interrupt the blocks a session has left running; wait until that is on disk.

        Args:
            leaves_leases: whether they are interrupted only when nobody writes in them for a while.
        """
        left = self._writers.end_session(session, leaves_leases=leaves_leases)
        self._watch_leases()
        for context in tuple(self._open.values()):
            if left and self._writers.interrupt(context, left.__contains__):
                await context.wait_persisted()

    def _watch_leases(self) -> None:
        end = self._writers.next_lease_end
        if end is not None and self._lease_timer is None:
            loop = asyncio.get_running_loop()
            self._lease_timer = loop.call_at(end, self._end_leases)

    def _end_leases(self) -> None:
        self._lease_timer = None
        over = self._writers.end_leases()
        for context in tuple(self._open.values()) if over else ():
            try:
                self._writers.interrupt(context, over.__contains__)
            except AntiphonError as error:
                _log.error("blocks of context %s stay open: %s", context.label, error)
        self._watch_leases()

    async def flush(self) -> None:
        """Write every streamed append into its block and wait until all is on disk."""
        for context in tuple(self._open.values()):
            context.appends.flush_all()
        for context in tuple(self._open.values()):
            await context.wait_persisted()

    async def interrupt_all(self) -> None:
        """Bring in what has been accepted, flush appends and mark what runs as interrupted.

        What cannot be saved is logged.
        """
        if self._lease_timer is not None:
            self._lease_timer.cancel()
        for context in tuple(self._open.values()):
            try:
                await context.in_flight.finish()
                context.appends.flush_all()
                self._writers.interrupt(context, lambda _: True)
                await context.wait_persisted()
            except AntiphonError as error:
                _log.error("context %s was closed unsaved: %s", context.label, error)

    async def close(self) -> None:
        """Write the snapshots that are due, and close every context."""
        for context in tuple(self._open.values()):
            snapshots = self._snapshots.pop(context.id, None)
            if snapshots is not None:  # else it has failed while another one was being closed
                await snapshots.close()
                context.close()
        self._open.clear()
