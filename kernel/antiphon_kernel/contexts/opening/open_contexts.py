"""The contexts that are open: from when they are asked for until nobody has used them for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from antiphon_kernel.cluster import Ownership
from antiphon_kernel.contexts.block_owners import BlockOwners
from antiphon_kernel.contexts.context import Context, Submission
from antiphon_kernel.contexts.opening.context_registry import ContextRegistry
from antiphon_kernel.contexts.opening.loader import Quarantine, open_document, open_recent
from antiphon_kernel.contexts.opening.snapshot_writer import SnapshotWriter
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import ContextRow, CorruptContextError, Journal, StoredContext
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.errors import (
    AntiphonError,
    ErrorCode,
    NotOwnerError,
    context_has_moved,
    kernel_is_closing,
    storage_failed,
)
from antiphon_kernel.types.ids import ContextId, SessionId
from antiphon_kernel.types.memory import return_free_memory
from antiphon_kernel.types.signal import Signal

_IN_USE_SECONDS: Final = 5.0
"""Seconds after its last use in which a context is likely to be used again."""

_PAUSE_SECONDS: Final = 0.06
"""Seconds between two trees that are handed over when a kernel ends."""

_PAUSES_SECONDS: Final = 5.0
"""Seconds of all these pauses together, at most."""

_log = logging.getLogger(__name__)

R = TypeVar("R")


class OpenContexts:
    """Every open context, with what watches it.

    Opening and storing raise AntiphonError storage_failed, or CorruptContextError.
    """

    def __init__(
        self,
        directory: ContextRegistry,
        quarantine: Quarantine,
        writers: BlockOwners,
        group: Callable[[ContextId], int | None],
        limits: Limits,
        ownership: Ownership | None = None,
    ) -> None:
        """
        Args:
            group: the same for contexts that are used together, None of a context that is used by
                itself.
            ownership: says which contexts this kernel may open, and that it is the only one that
                has them open; None if there are no others.
        """
        self.opened = Signal[Context]()
        """Each context that is opened."""
        self.closed = Signal[Context]()
        """Each context that is closed because nobody uses it, or another kernel has it."""
        self.submissions = Signal[Submission]()
        self.inherited = Signal[int]()
        """The root of each tree of forks that was taken from a kernel that has died."""
        self._journal = directory.journal
        self._directory = directory
        self._quarantine = quarantine
        self._writers = writers
        self._group = group
        self._clock = directory.clock
        self._limits = limits
        self._open: dict[ContextId, Context] = {}
        self._snapshots: dict[ContextId, SnapshotWriter] = {}
        self._lease_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks(_log)
        self._closing_idle: asyncio.Task[None] | None = None
        self._is_ending = False
        self._seen: dict[ContextId, tuple[int, float]] = {}
        """Version and last use of each open context when it was looked last whether one is idle."""
        self._trimmed: dict[ContextId, tuple[int, float]] | None = None
        """The same when the system got back free memory last."""
        self._opening = WeakValueDictionary[ContextId, asyncio.Lock]()
        """Held by those who open a context, or wait until somebody else has."""
        self._ownership = ownership
        self.read_again: Callable[[], Awaitable[None]]
        """Reads what others may have changed before this kernel has a tree."""
        self._trees = WeakValueDictionary[int, asyncio.Lock]()
        """Held by those who open contexts of a tree of forks, or give it up, by its root."""
        if ownership is not None:
            ownership.lost.listen(self._lose)

    def get(self, context: ContextId) -> Context | None:
        """None if it is not open; else it stays open until the work that asks is over."""
        found = self._open.get(context)
        if found is not None:
            found.users.add_current()
        return found

    def ids(self) -> tuple[ContextId, ...]:
        """Return the ids of the contexts that are open."""
        return tuple(self._open)

    async def open(self, context: ContextId, *, is_partial: bool = False) -> Context:
        """A context of the directory, opened if it is not yet; open until the work is over.

        If `is_partial`, the last blocks of a long one are enough.
        """
        async with self._opening.setdefault(context, asyncio.Lock()):
            found = self._open.get(context)
            if found is None:
                found = await self._load_owned(self._directory[context], is_partial=is_partial)
            found.users.add_current()
            return found

    async def _load_owned(self, row: ContextRow, *, is_partial: bool) -> Context:
        ownership = self._ownership
        if ownership is None:
            return self._begin(*await self._read_stored(row, is_partial=is_partial))
        if self._is_ending:
            raise kernel_is_closing()
        root = self._directory.root(row.number)
        async with self._trees.setdefault(root, asyncio.Lock()):
            await ownership.acquire(root)
            epoch = ownership.epoch(root)
            reading = self._read_stored(row, is_partial=is_partial)
            (stored, document), _ = await asyncio.gather(reading, self._read_taken(root))
            context = self._begin(replace(stored, row=self._directory[row.id]), document)
            if not ownership.owns(root) or epoch != ownership.epoch(root):
                context.stop(context_has_moved())
            context.raise_if_stopped()
            return context

    async def _read_taken(self, root: int) -> None:
        """Read what others have changed of a tree, if it was taken; one call at a time."""
        assert self._ownership is not None
        if root in self._ownership.unread:
            await self.read_again()
            if self._ownership.unread.pop(root, False):
                self.inherited.notify(root)

    async def _read_stored(
        self, row: ContextRow, *, is_partial: bool
    ) -> tuple[StoredContext, Document]:
        found = await self._read(row, open_recent) if is_partial else None
        return found if found is not None else await self._read(row, open_document)

    def _begin(self, stored: StoredContext, document: Document) -> Context:
        row = stored.row
        context = Context(
            stored,
            document,
            self._journal,
            self._clock,
            self._limits,
            self._directory.guard,
            partial(self._read_whole, row),
        )
        context.failed.listen(lambda error: self._drop(context, error))
        context.submitted.listen(self.submissions.notify)
        self._open[row.id] = context
        self._snapshots[row.id] = SnapshotWriter(self._journal, context, self._limits, stored)
        self._writers.watch(context)
        self.opened.notify(context)
        self._watch_idle()
        return context

    async def _read(
        self, row: ContextRow, read: Callable[[Journal, ContextRow, int], Awaitable[R]]
    ) -> R:
        """Read a context; one that is found damaged is not read once more."""
        self._quarantine.raise_if_quarantined(row.id)
        try:
            return await read(self._journal, row, self._directory.ids.client_id())
        except CorruptContextError as error:
            self._quarantine.add(row.id, error)
            raise

    async def _read_whole(self, row: ContextRow) -> tuple[StoredContext, Document]:
        """Read all of a partial context."""
        stored, document = await self._read(row, open_document)
        if (snapshots := self._snapshots.get(row.id)) is not None:
            snapshots.count_from(stored)
        return stored, document

    def _drop(self, context: Context, error: AntiphonError) -> None:
        level = logging.INFO if error.code is ErrorCode.NOT_OWNER else logging.ERROR
        _log.log(level, "context %s is closed and will be read again: %s", context.label, error)
        self._open.pop(context.id, None)
        snapshots = self._snapshots.pop(context.id, None)
        if snapshots is not None:
            snapshots.cancel()
        # Streams into it have lost text: their blocks must not go on as if nothing had happened.
        self._writers.forget(context.id)
        if error.code is ErrorCode.NOT_OWNER:
            self.closed.notify(context)

    # Trees of forks that other kernels can have

    def _of_tree(self, root: int) -> list[Context]:
        return [one for one in self._open.values() if self._directory.root(one.row.number) == root]

    def _lose(self, root: int) -> None:
        """Drop what is open of a tree, as it is on disk: it may be another kernel's."""
        for context in self._of_tree(root):
            self._journal.refuse_waiting(context.row.number, context_has_moved())
            context.stop(context_has_moved())

    async def hand_over(self, root: int) -> None:
        """Write all of a tree, and let another kernel have it.

        Raises NotOwnerError if a program is writing in it, which goes on here.
        """
        ownership = self._ownership
        assert ownership is not None
        # Not within the lock: whoever takes the tree may ask this kernel, known by a former number.
        if not ownership.owns(root):
            return
        async with self._trees.setdefault(root, asyncio.Lock()):
            self._refuse_written(root)
            for context in self._of_tree(root):
                await self._store_all(context, is_wanted=True)
            self._refuse_written(root)
            await self._give_up(root)

    async def own(self, row: ContextRow) -> None:
        """Return when no other kernel has a context, for what is stored of it without opening it.

        Raises NotOwnerError if another kernel keeps it.
        """
        if self._ownership is not None:
            root = self._directory.root(row.number)
            async with self._trees.setdefault(root, asyncio.Lock()):
                await self._ownership.acquire(root)
                await self._read_taken(root)

    def _refuse_written(self, root: int) -> None:
        for context in self._of_tree(root):
            if self._writers.has_writers(context):
                raise NotOwnerError(
                    f"A program is writing in the context {context.label}, which its kernel keeps"
                    " until that is over: try again then, or stop it."
                )

    async def hand_over_all(self) -> None:
        """Let the other kernels have everything, and open nothing any more; nothing else runs on.

        What cannot be saved is logged.
        """
        ownership = self._ownership
        if ownership is None:
            return
        await self._stop_watching()
        try:
            is_wanted = bool(await ownership.live() - {ownership.address})
            await self.release_unused()
            roots = ownership.roots()
            for root in roots:
                async with self._trees.setdefault(root, asyncio.Lock()):
                    contexts = self._of_tree(root)
                    is_used = is_wanted and any(map(self._is_in_use, contexts))
                    for context in contexts:
                        await self._interrupt(context)
                        await self._store_all(context, is_wanted=is_wanted)
                        await self._interrupt(context)  # what has begun meanwhile
                    await self._give_up(root)
                if is_used:  # kernels that open all at once let every client wait
                    await asyncio.sleep(min(_PAUSE_SECONDS, _PAUSES_SECONDS / len(roots)))
        except AntiphonError as error:
            _log.error("what this kernel has is free when its lease has run out: %s", error)

    async def _store_all(self, context: Context, *, is_wanted: bool) -> None:
        """Bring in what has been accepted, and write what opening the context again needs.

        If it `is_wanted`, another kernel opens it at once if it is used: its clients wait.
        """
        await context.in_flight.finish()
        context.appends.flush_all()
        snapshots = self._snapshots.get(context.id)
        if snapshots is not None and not (is_wanted and self._is_in_use(context)):
            await snapshots.write_last()

    def _is_in_use(self, context: Context) -> bool:
        users = context.users
        return bool(users.count) or self._clock.monotonic() - users.used_at < _IN_USE_SECONDS

    async def _give_up(self, root: int) -> None:
        assert self._ownership is not None
        contexts = self._of_tree(root)
        for context in contexts:
            context.appends.flush_all()
            context.stop(context_has_moved())
        for context in contexts:
            with suppress(AntiphonError):  # nobody has been told that it is on disk
                await context.wait_persisted()
        await self._ownership.release(root)

    async def release_unused(self) -> None:
        """Let other kernels have the trees of which nothing is open."""
        if self._ownership is not None:
            used = {self._directory.root(one.row.number) for one in self._open.values()}
            used.update(root for root, lock in self._trees.items() if lock.locked())
            await self._ownership.release(*(self._ownership.roots() - used))

    async def end_session(self, session: SessionId, *, leaves_leases: bool) -> None:
        """Interrupt the blocks a session has left running; wait until that is on disk.

        If it `leaves_leases`, only when nobody writes in them for a while.
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

    # Contexts that nobody uses

    def _watch_idle(self) -> None:
        if self._idle_timer is None and self._open and not self._is_ending:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(
                self._limits.idle_check_seconds, self._start_closing_idle
            )

    def _start_closing_idle(self) -> None:
        self._idle_timer = None
        self._closing_idle = self._tasks.start(self.close_idle(), "closing idle contexts")
        self._closing_idle.add_done_callback(lambda _: self._watch_idle())

    async def close_idle(self) -> None:
        """Close the contexts that nobody has used for long, the longest unused first.

        The system gets back what they and the opening of long ones have left, once none has been
        used from one call to the next: that takes milliseconds in which nobody is served.
        """
        used_at = self._used_at()
        long_ago = self._clock.monotonic() - self._limits.idle_context_seconds
        for context in sorted(self._open.values(), key=lambda one: used_at[one.id]):
            if used_at[context.id] <= long_ago:
                await self._close_idle(context)
        for context in tuple(self._open.values()):
            await self._leave_out_oldest(context)
        await self.release_unused()
        before, self._seen = self._seen, {one.id: _last_use(one) for one in self._open.values()}
        if self._seen.items() <= before.items() and self._seen != self._trimmed:
            self._trimmed = self._seen
            return_free_memory()

    def _used_at(self) -> dict[ContextId, float]:
        """Return when each open context was last used, or one that is used together with it."""
        groups = {one: self._group(one) or one for one in self._open}
        latest = dict.fromkeys(groups.values(), -inf)
        for one, context in self._open.items():
            users = context.users
            latest[groups[one]] = max(latest[groups[one]], inf if users.count else users.used_at)
        return {one: latest[group] for one, group in groups.items()}

    async def _close_idle(self, context: Context) -> None:
        """Close a context, unless somebody uses it before what opening it needs is on disk."""
        if not self._is_closable(context):
            return
        before = self._used_at()[context.id], context.seq
        try:
            if not await self._snapshots[context.id].write_last():
                _log.error("context %s stays open: not all of it could be stored", context.label)
                context.users.touch()
                return
            # From here on nothing may come between.
            is_unused = self._is_closable(context) and before[0] < inf
            if not is_unused or (self._used_at()[context.id], context.seq) != before:
                return
            del self._open[context.id]
            self._snapshots.pop(context.id).cancel()
            self.closed.notify(context)
            reason = (
                f"Context {context.label} was closed because nobody used it any more: call once"
                " more."
            )
            context.close(storage_failed(reason))
        except Exception:  # noqa: BLE001  whatever it is, the context is as it was
            _log.exception("context %s stays open: closing it failed", context.label)
            context.users.touch()

    async def _leave_out_oldest(self, context: Context) -> None:
        """Hold the last blocks of a long context only, if others have not been needed for long."""
        before, client = _last_use(context), self._directory.ids.client_id()
        if not self._needs_only_recent(context) or self._seen.get(context.id) != before:
            return
        shown = context.block_count - min(context.replicas())
        try:
            if await self._snapshots[context.id].write_last(shown):
                recent = await open_recent(self._journal, context.row, client)
                # From here on nothing may come between.
                is_same = _last_use(context) == before
                if recent is not None and is_same and self._needs_only_recent(context):
                    cut = recent[0].cut
                    if cut is not None and min(context.replicas()) >= cut.omitted:
                        self.closed.notify(context)
                        context.leave_out_oldest(*recent)
        except Exception:  # noqa: BLE001  whatever it is, the context is as it was
            _log.exception("all of context %s stays open", context.label)
        context.users.touch()

    def _needs_only_recent(self, context: Context) -> bool:
        """Return whether all who use a context are replicas that hold its last blocks only."""
        replicas, users, limits = context.replicas(), context.users, self._limits
        is_long = context.block_count > 2 * limits.recent_blocks and not context.is_partial
        is_idle = self._clock.monotonic() - users.used_at >= limits.whole_context_seconds
        is_shown_only = len(replicas) == users.count and min(replicas, default=0) > 0
        return is_long and is_idle and is_shown_only and self._is_settled(context)

    def _is_closable(self, context: Context) -> bool:
        return self._is_settled(context) and not context.presence.states()

    def _is_settled(self, context: Context) -> bool:
        """Return whether an open context can be stored, and nothing is on its way into it."""
        is_open = self._open.get(context.id) is context and not self._is_ending
        is_settled = is_open and context.journal.is_writable and context.is_settled
        return is_settled and not self._writers.has_writers(context)

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
        await self._stop_watching()
        for context in tuple(self._open.values()):
            await self._interrupt(context)

    async def _stop_watching(self) -> None:
        self._is_ending = True
        for timer in (self._lease_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        if self._closing_idle is not None:
            await asyncio.wait({self._closing_idle})

    async def _interrupt(self, context: Context) -> None:
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
                await snapshots.write_last()
                snapshots.cancel()
                context.close(kernel_is_closing())
        self._open.clear()


def _last_use(context: Context) -> tuple[int, float]:
    return context.seq, context.users.used_at
