"""The commits of one context: numbered, handed to the journal, told to those who follow.

A change that the document has taken in goes to disk and is then acknowledged and broadcast, in the
order of `seq`. After a failed commit nothing more is taken: the context has to be read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from antiphon_kernel.contexts.commit_types import Applied, Broadcast, CommitHandle, PendingCommit
from antiphon_kernel.contexts.header_rules import follow_change
from antiphon_kernel.contexts.history_cache import HistoryCache
from antiphon_kernel.contexts.undo_stack import (
    NOTHING_RECORDED,
    StackChange,
    UndoStacks,
)
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.storage import BlockRow, Commit, Journal, SessionRow, StoredContext
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, kernel_is_closing
from antiphon_kernel.validation import LazyItemIndex
from antiphon_kernel.yjs.merge import merge


class Commits:
    """Committed state of one context, and its commit pipeline. Belongs to one event loop."""

    def __init__(
        self,
        stored: StoredContext,
        document: Document,
        structure: LazyItemIndex,
        journal: Journal,
        clock: Clock,
        undo_entries: int,
    ) -> None:
        self.row = stored.row
        """As the journal knows the context, or will when what is on its way is on disk."""
        self.seq = stored.seq
        """The number of the last transaction."""
        self.undo = UndoStacks(stored.undo, undo_entries)
        self.histories = HistoryCache(
            journal,
            stored.row,
            document,
            seq=lambda: self.seq,
            number_of=self.number,
            settled=self.wait_persisted,
        )
        self._document = document
        self._structure = structure
        self._journal = journal
        self._clock = clock
        self._generation = stored.generation
        self._blocks = {row.id: row for row in stored.blocks}
        self._persisted = {row.id: row.version for row in stored.blocks}
        self._subscribers: list[Callable[[Broadcast], None]] = []
        self._on_applied: list[Callable[[Applied], None]] = []
        self._on_failure: list[Callable[[AntiphonError], None]] = []
        self._changes: list[DocumentChange] = []
        document.watch(self._changes.append)
        self._last: asyncio.Future[None] | None = None
        self._failure: AntiphonError | None = None

    def number(self, block: str) -> int:
        """Return the journal's number of a block."""
        return self._blocks[block].number

    def version(self, block: str) -> int:
        """Return the change count of a block; 1 at creation, 0 if there is no such block."""
        row = self._blocks.get(block)
        return row.version if row is not None else 0

    def persisted_version(self, block: str) -> int:
        """The last version of a block that is on disk; 0 if there is none yet."""
        return self._persisted.get(block, 0)

    def commit(self, change: PendingCommit) -> CommitHandle:
        """Number a change that the document has taken in, and send it on its way to disk."""
        if change.update is None:
            return CommitHandle(self.seq, {}, self._last or _done())
        update, added = self._with_consequences(change, change.update)
        self._structure.follow(update)
        row = self._next_row(change, update)
        on_disk = self._journal.commit(row)
        versions = {block.id: block.version for block in row.blocks}
        self._notify_applied(change, row, versions)
        self.histories.follow(row.as_stored)
        source = change.handed_in.source if change.handed_in is not None else None
        broadcasts = [Broadcast(row.seq, update, source)]
        if source is not None and added is not None:
            # Its own update does not go back to a client, but what the kernel added does.
            broadcasts.append(Broadcast(row.seq, added, None))
        on_disk.add_done_callback(partial(self._after_commit, broadcasts, versions))
        self._last = on_disk
        return CommitHandle(row.seq, versions, on_disk)

    def _with_consequences(
        self, change: PendingCommit, update: bytes
    ) -> tuple[bytes, bytes | None]:
        """The update with what the kernel writes because of it; and all that the kernel wrote."""
        handed_in = change.handed_in
        added = handed_in.added if handed_in is not None else None
        submitted = handed_in.submitted if handed_in is not None else ()
        follow_up = follow_change(self._document, change.transaction.change, submitted)
        if follow_up is None:
            return update, added
        return (
            merge((update, follow_up)),
            merge((added, follow_up)) if added is not None else follow_up,
        )

    def _next_row(self, change: PendingCommit, update: bytes) -> Commit:
        """What is stored of a change, under the next number."""
        time = self._clock.now_ms()
        self.seq += 1
        stacks = change.stacks if change.stacks is not None else self._record_undo(change, time)
        handed_in = change.handed_in
        touched = change.transaction.change.touched
        if handed_in is not None and handed_in.submitted:
            touched = tuple(dict.fromkeys((*touched, *handed_in.submitted)))
        return Commit(
            context=self.row,
            seq=self.seq,
            time=time,
            principal=change.actor.principal,
            session=SessionRow.of(change.actor),
            operation=change.operation,
            blocks=tuple(map(self._next_version, touched)),
            update=update,
            unit=stacks.unit,
            undo=stacks.kept,
            dropped_undo=stacks.dropped,
            clients=handed_in.clients if handed_in is not None else (),
            revivals=change.revivals,
            restated=change.restated,
            generation=self._generation,
        )

    def _record_undo(self, change: PendingCommit, time: int) -> StackChange:
        if change.undo is None:
            return NOTHING_RECORDED
        of_document = change.transaction.change
        blocks = {text.block: None for text in of_document.texts}
        blocks.update({content.block: None for content in of_document.contents})
        # What a structured block begins with is its form, not something that somebody wrote.
        new = {block: None for block in of_document.added if is_text(self._document.schema(block))}
        blocks.update(new)
        if not blocks:
            return NOTHING_RECORDED
        return self.undo.record(change.actor, change.undo, tuple(blocks), self.seq, time)

    def _next_version(self, block: str) -> BlockRow:
        row = self._blocks.get(block)
        if row is None:
            row = BlockRow(len(self._blocks) + 1, block, 1)
        else:
            row = BlockRow(row.number, block, row.version + 1)
        self._blocks[block] = row
        return row

    def _notify_applied(
        self, change: PendingCommit, row: Commit, versions: Mapping[str, int]
    ) -> None:
        changes = tuple(self._changes)
        self._changes.clear()
        applied = Applied(row.seq, row.time, change.actor, row.operation, changes, versions)
        for listener in tuple(self._on_applied):
            listener(applied)

    def _after_commit(
        self,
        broadcasts: Sequence[Broadcast],
        versions: Mapping[str, int],
        future: asyncio.Future[None],
    ) -> None:
        error = future.exception()
        if error is not None:
            assert isinstance(error, AntiphonError)
            self.stop(error)
            return
        self._persisted.update(versions)
        for broadcast in broadcasts:
            for subscriber in tuple(self._subscribers):
                subscriber(broadcast)

    def on_failure(self, listener: Callable[[AntiphonError], None]) -> Callable[[], None]:
        """Call `listener` when a commit has failed; returns the way to stop."""
        self._on_failure.append(listener)
        return lambda: self._on_failure.remove(listener)

    def stop(self, error: AntiphonError) -> None:
        """Take nothing more: the document is not what is on disk."""
        if self._failure is None:
            self._failure = error
            for listener in tuple(self._on_failure):
                listener(error)

    @contextmanager
    def fail_context_on_error(self) -> Iterator[None]:
        """There is no roll-back: after a failure what is on disk is right, and read again."""
        try:
            yield
        except BaseException:
            self.stop(
                AntiphonError(
                    ErrorCode.STORAGE_FAILED,
                    f"A change of context {self.row.label} failed half-way, so the context is read"
                    " again as it is on disk: call once more.",
                )
            )
            raise

    def raise_if_stopped(self) -> None:
        """Raises AntiphonError storage_failed if a commit has failed, or none can be made."""
        if self._failure is not None:
            raise self._failure
        self._journal.refuse_if_broken()

    def subscribe(self, listener: Callable[[Broadcast], None]) -> Callable[[], None]:
        """Call `listener` with each change once it is on disk; returns the way to stop."""
        self._subscribers.append(listener)
        return lambda: self._subscribers.remove(listener)

    def on_applied(self, listener: Callable[[Applied], None]) -> Callable[[], None]:
        """Call `listener` with each change when it is applied, not on disk yet.

        What it learns is to be told to nobody before the broadcast of the same `seq`. Returns the
        way to stop.
        """
        self._on_applied.append(listener)
        return lambda: self._on_applied.remove(listener)

    async def wait_persisted(self) -> None:
        """Wait until everything that has been applied so far is on disk.

        Raises:
            AntiphonError: storage_failed.
        """
        if self._last is not None:
            await asyncio.shield(self._last)

    def close(self) -> None:
        """Take nothing more and tell nobody; what was handed to the journal is still written."""
        self._failure = self._failure or kernel_is_closing()
        self._subscribers.clear()


def _done() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future
