"""The commits of one context: numbered, handed to the journal, told to those who follow.

A change that the document has taken in goes to disk and is then acknowledged and broadcast, in the
order of `seq`. After a failed commit nothing more is taken: the context has to be read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from antiphon_kernel.document.changes import DocumentChange, Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.journal.journal import Journal
from antiphon_kernel.journal.rows import BlockRow, Commit, StoredContext, StoredOp
from antiphon_kernel.kernel.admission.structure import Structure
from antiphon_kernel.kernel.context.commitment import Applied, Broadcast, Written
from antiphon_kernel.kernel.context.header_rules import follow_change
from antiphon_kernel.kernel.context.histories import Histories
from antiphon_kernel.kernel.context.undo_stack import StackChange, UndoKind, UndoStacks
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.merge import merge
from antiphon_kernel.wire.revivals import Revival


class Commits:
    """What has been committed to one context, and the way there. Belongs to one event loop."""

    def __init__(
        self,
        stored: StoredContext,
        document: Document,
        structure: Structure,
        journal: Journal,
        clock: Clock,
        undo_entries: int,
    ) -> None:
        self.row = stored.row
        """As the journal knows the context, or will when what is on its way is on disk."""
        self.seq = stored.seq
        """The number of the last transaction."""
        self.undo = UndoStacks(stored.undo, undo_entries)
        self.histories = Histories(
            journal,
            stored.row,
            document,
            seq=lambda: self.seq,
            number_of=self.number,
            settled=self.settled,
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
        """What stands for a block in the journal."""
        return self._blocks[block].number

    def version(self, block: str) -> int:
        """How often a block has changed; 1 at creation, 0 if there is no such block."""
        row = self._blocks.get(block)
        return row.version if row is not None else 0

    def persisted_version(self, block: str) -> int:
        """The last version of a block that is on disk; 0 if there is none yet."""
        return self._persisted.get(block, 0)

    def commit(
        self,
        actor: Actor,
        operation: str,
        transaction: Transaction,
        update: bytes | None,
        undo: UndoKind | None,
        *,
        source: object = None,
        clients: tuple[int, ...] = (),
        echo: bytes | None = None,
        submitted: tuple[str, ...] = (),
        stacks: StackChange | None = None,
        revivals: tuple[Revival, ...] = (),
        restated: bool = False,
    ) -> Written:
        """Number a change that the document has taken in, and send it on its way to disk.

        Args:
            transaction: what changed.
            update: all that has to be stored of it; None if nothing changed.
            undo: how it counts for the actor's undo; None if not at all.
            source: who handed it in as a raw update.
            clients: CRDT client ids that the actor has used for the first time.
            echo: what the kernel added to a raw update.
            submitted: drafts that a raw update has finished.
            stacks: what it does to the undo stacks, if it turns a unit.
            revivals: which of its ids are others come back.
            restated: whether the journal's row of the context changes with it.
        """
        if update is None:
            return Written(self.seq, {}, self._last or _done())
        follow_up = follow_change(self._document, transaction.change, submitted)
        if follow_up is not None:
            update = merge((update, follow_up))
            echo = merge((echo, follow_up)) if echo is not None else follow_up
        self._structure.follow(update)
        touched = tuple(dict.fromkeys((*transaction.change.touched, *submitted)))
        time = self._clock.now_ms()
        if stacks is None:
            stacks = self._record_undo(actor, transaction, undo, time)
        self.seq += 1
        rows = tuple(map(self._next_version, touched))
        on_disk = self._journal.commit(
            Commit(
                context=self.row,
                seq=self.seq,
                time=time,
                principal=actor.principal,
                session=actor.session,
                operation=operation,
                blocks=rows,
                update=update,
                unit=stacks.unit,
                undo=stacks.kept,
                dropped_undo=stacks.dropped,
                clients=clients,
                revivals=revivals,
                restated=restated,
                generation=self._generation,
            )
        )
        applied = Applied(
            self.seq,
            time,
            actor,
            operation,
            tuple(self._changes),
            {row.id: row.version for row in rows},
        )
        self._changes.clear()
        for listener in tuple(self._on_applied):
            listener(applied)
        seq, versions = self.seq, {row.number: row.version for row in rows}
        self.histories.follow(
            lambda: StoredOp(
                seq,
                time,
                actor.principal.id,
                operation,
                versions,
                update,
                stacks.unit,
                revivals,
            )
        )
        broadcasts = [Broadcast(self.seq, update, source)]
        if source is not None and echo is not None:
            # Its own update does not go back to a client, but what the kernel added does.
            broadcasts.append(Broadcast(self.seq, echo, None))
        on_disk.add_done_callback(lambda future: self._after_commit(future, broadcasts, rows))
        self._last = on_disk
        return Written(self.seq, applied.versions, on_disk)

    def _record_undo(
        self, actor: Actor, transaction: Transaction, kind: UndoKind | None, time: int
    ) -> StackChange:
        change = transaction.change
        blocks = dict.fromkeys(text.block for text in change.texts)
        blocks.update(dict.fromkeys(content.block for content in change.contents))
        # What a structured block begins with is its form, not something that somebody wrote.
        new = [block for block in change.added if is_text(self._document.schema(block))]
        blocks.update(dict.fromkeys(new))
        if kind is None or not blocks:
            return StackChange()
        return self.undo.record(actor, kind, tuple(blocks), self.seq + 1, time)

    def _next_version(self, block: str) -> BlockRow:
        row = self._blocks.get(block)
        if row is None:
            row = BlockRow(len(self._blocks) + 1, block, 1)
        else:
            row = BlockRow(row.number, block, row.version + 1)
        self._blocks[block] = row
        return row

    def _after_commit(
        self,
        future: asyncio.Future[None],
        broadcasts: list[Broadcast],
        rows: Iterable[BlockRow],
    ) -> None:
        error = future.exception()
        if error is not None:
            assert isinstance(error, AntiphonError)
            self.stop(error)
            return
        self._committed = broadcasts[0].seq
        self._persisted.update((row.id, row.version) for row in rows)
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

    def refuse_if_stopped(self) -> None:
        """Raises AntiphonError storage_failed if a commit has failed."""
        if self._failure is not None:
            raise self._failure

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

    async def settled(self) -> None:
        """Wait until everything that has been applied so far is on disk.

        Raises:
            AntiphonError: storage_failed.
        """
        if self._last is not None:
            await asyncio.shield(self._last)

    def close(self) -> None:
        """Tell nobody any more; what was handed to the journal is still written."""
        self._subscribers.clear()


def _done() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future
