"""One context while it is open: its document, its commits, its undo stacks and its histories.

Every change goes the same way: whoever makes it is checked, it is applied to the document, numbered
and handed to the journal; when it is on disk it is acknowledged and broadcast, in the order of
`seq`. After a failed commit nothing more is taken: the context has to be read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar, cast

from antiphon_kernel.access import WriteGuard, check_draft
from antiphon_kernel.cluster import stop_forwarding
from antiphon_kernel.contexts.append_buffer import AppendBuffers
from antiphon_kernel.contexts.block_tree import BlockTree
from antiphon_kernel.contexts.commit_types import (
    Applied,
    Broadcast,
    CommitHandle,
    Inherited,
    PendingCommit,
)
from antiphon_kernel.contexts.context_journal import BlockIds, BlockRows, ContextJournal
from antiphon_kernel.contexts.context_users import ContextUsers
from antiphon_kernel.contexts.header_rules import follow_change, hide_blocks
from antiphon_kernel.contexts.history.history_cache import HistoryCache
from antiphon_kernel.contexts.in_flight import InFlightUpdates
from antiphon_kernel.contexts.introductions import introduce, with_member
from antiphon_kernel.contexts.presence import Presence
from antiphon_kernel.contexts.undo_stack import (
    NOTHING_RECORDED,
    StackChange,
    UndoKind,
    UndoStacks,
)
from antiphon_kernel.document.changes import DocumentChange, Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.history.undo_units import UpdatePlan
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import (
    Blob,
    Commit,
    ContextRow,
    DriftRow,
    FileRow,
    InheritedText,
    Journal,
    StoredContext,
    UndoRow,
)
from antiphon_kernel.types.clock import Clock, iso_time_if
from antiphon_kernel.types.enums import ContextKind
from antiphon_kernel.types.errors import AntiphonError, invalid_params, storage_failed
from antiphon_kernel.types.ids import BlockId, ContextId, PrincipalId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, Member
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.validation import LazyItemIndex
from antiphon_kernel.yjs.id_set import decode_state_vector
from antiphon_kernel.yjs.merge import merge

_ORDER: Final = frozenset({"order"})

R = TypeVar("R")


class Context:
    """An open context. All methods belong to one event loop.

    Every write raises AntiphonError permission_denied if the actor may not make it, or a block is
    somebody else's draft; writing, reading the journal and waiting for it raise storage_failed.
    """

    def __init__(
        self,
        stored: StoredContext,
        document: Document,
        journal: Journal,
        clock: Clock,
        limits: Limits,
        guard: WriteGuard,
        read_whole: Callable[[], Awaitable[tuple[StoredContext, Document]]],
    ) -> None:
        """`read_whole` reads all of the context, as far as it is on disk."""
        self.row = stored.row
        """As the journal knows the context, or will when what is on its way is on disk."""
        self.seq = stored.seq
        """The version of the context: the number of its last transaction."""
        self.presence = Presence()
        self.users = ContextUsers(clock)
        self.limits = limits
        self.guard = guard
        self.replicas: Callable[[], Sequence[int]] = tuple
        """Number of blocks that each replica of it which is connected was given to leave out."""
        self.appends = AppendBuffers(self._append, self._check_writer, limits)
        """Streamed appends that are not in the document yet."""
        self.in_flight = InFlightUpdates()
        """Large raw updates on their way in."""
        self.undo = UndoStacks(stored.undo, limits.undo_entries)
        """Undo and redo stacks of everybody."""
        self.applied = Signal[Applied]()
        """Each change when it is applied, not on disk yet.

        What a listener learns is to be told to nobody before the broadcast of the same `seq`.
        """
        self.committed = Signal[Broadcast]()
        """Each change once it is on disk."""
        self.failed = Signal[AntiphonError]()
        """The failure after which nothing more is taken."""
        self.submitted = Signal[Submission]()
        """Each draft that a raw update has submitted, once that is on disk."""
        self._journal = journal
        self._clock = clock
        self.client_owners = dict(stored.clients)
        """Principal of each CRDT client id that has written so far."""
        self._generation = stored.generation
        self.blocks = BlockRows()
        """Numbers and versions of its blocks."""
        self.journal = ContextJournal(journal, stored.row, self.blocks)
        """Its changes that are on disk."""
        self._changes: list[DocumentChange] = []
        self._read_whole = read_whole
        self._reading_whole = asyncio.Lock()
        self._later: list[tuple[int, bytes]] | None = None
        """Number and update of each change that is made while the whole context is read."""
        self._last: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """The end of the last commit."""
        self._last.set_result(None)
        self._failure: AntiphonError | None = None
        index = LazyItemIndex(document, stored.item_index or None, stored.updates)
        self._take_over(stored, document, index)

    def _take_over(
        self, stored: StoredContext, document: Document, structure: LazyItemIndex
    ) -> None:
        """Begin with a document, or go on with another one, which holds more or less of it."""
        self.cut = stored.cut
        """Point of the history that it begins at, if it holds its last blocks only."""
        self.document = document
        self.structure = structure
        self.block_tree = BlockTree(document)
        self._readings: dict[Callable[[Document], object], object] = {}
        self.histories = HistoryCache(
            self._journal,
            stored.row,
            document,
            seq=lambda: self.seq,
            number_of=self.blocks.number,
            settled=self.wait_persisted,
        )
        """Content histories of the blocks."""
        self._numbering = BlockIds(stored.row.id, document.block_ids())
        self.blocks.add_stored(stored.blocks)
        document.watch(self._changes.append)

    @property
    def is_partial(self) -> bool:
        """Return whether it holds its last blocks only: see `whole`."""
        return self.cut is not None

    @property
    def block_count(self) -> int:
        """Return the number of its blocks, with those that it does not hold."""
        return len(self.document) + (self.cut.omitted if self.cut is not None else 0)

    def holds_last(self, count: int) -> bool:
        """Return whether it holds so many of its last blocks, in document order."""
        return self.cut is None or count <= self.cut.complete

    async def whole(self) -> None:
        """Read the blocks that were left out when it was opened, while others may write."""
        async with self._reading_whole:
            if self.cut is None:
                return
            later = self._later = list[tuple[int, bytes]]()
            try:
                await self.wait_persisted()
                stored, document = await self._read_whole()
                structure = LazyItemIndex(document, stored.item_index or None, stored.updates)
                if self.structure.ready:
                    await structure.read()
            finally:
                self._later = None
            # From here on nothing may come between.
            self.raise_if_stopped()
            for seq, update in later:
                if seq > stored.seq:
                    document.apply_update(update)
                    structure.follow(update)
            self._replace(stored, document, structure)

    def leave_out_oldest(self, stored: StoredContext, document: Document) -> None:
        """Hold the last blocks only, until somebody needs the others again; see `whole`."""
        self.blocks.clear()
        self._replace(stored, document, LazyItemIndex(document))

    def _replace(self, stored: StoredContext, document: Document, structure: LazyItemIndex) -> None:
        """Go on with another document, and make the memory of the one before free at once."""
        self.histories.close(_refuse_replaced)
        self.structure.close()
        self.document.close()
        self._take_over(stored, document, structure)

    async def read_structure(self) -> None:
        """Read the index of the items, also if that of the whole document takes its place."""
        while not self.structure.ready:
            await self.structure.read()

    @property
    def id(self) -> ContextId:
        return self.row.id

    @property
    def label(self) -> str:
        return self.row.label

    def reading(self, make: Callable[[Document], R]) -> R:
        """Return what `make` makes of the document, once for each document that the context has.

        So packages above this one keep their own view of a document for as long as it is open.
        """
        if make not in self._readings:
            self._readings[make] = make(self.document)
        return cast(R, self._readings[make])

    def username(self, principal: str) -> str:
        """Return the name of a principal who has been here; the id of anybody else."""
        member = self.document.member(principal)
        return member.username if member is not None else principal

    def block_name(self, block: str) -> str:
        """Return the short form of a block's id: label, username and number."""
        _, principal, seq = block.split(".")
        return f"{self.label}.{self.username(principal)}.{seq}"

    async def history(self, block: str) -> BlockHistory:
        """The history of a block's content, up to date with the document until the next await."""
        return (await self.histories.open([block]))[0]

    async def wait_persisted(self) -> None:
        """Wait until everything that has been applied so far is on disk."""
        await asyncio.shield(self._last)

    async def persisted(self, told: R) -> R:
        """Return what is told of it, once everything that has been applied so far is on disk."""
        await self.wait_persisted()
        return told

    async def committed_state(self, state_vector: bytes | None, size: int) -> AsyncIterator[bytes]:
        """Yield the updates that bring a peer up to date, of so many bytes or so, all on disk."""
        for part in self.document.parts_since(state_vector, size):
            await self.wait_persisted()
            yield part

    @property
    def is_settled(self) -> bool:
        """Return whether nothing is on its way into it."""
        return self._last.done() and self.appends.is_empty and self.in_flight.is_empty

    def close(self, reason: AntiphonError) -> None:
        """Let go of the document; what was handed to the journal is still written.

        `reason` is raised for everything that anybody still wants to write.
        """
        self._failure = self._failure or reason
        for signal in (self.applied, self.committed, self.failed, self.submitted):
            signal.clear()
        self.presence.changed.clear()

        def refuse(*_: object) -> NoReturn:
            raise reason

        # Nothing within it refers to the context any more, so that its memory is free at once.
        self.appends.close(refuse)
        self.histories.close(refuse)
        self.structure.close()
        self.document.close()

    # Writing of tools

    def write(
        self,
        actor: Actor,
        operation: str,
        change: Callable[[], None],
        *,
        blocks: Sequence[str],
        undo: UndoKind | None = UndoKind.CALL,
        blobs: Sequence[Blob] = (),
        file: FileRow | None = None,
        drift: DriftRow | None = None,
        inherited: Inherited = MappingProxyType({}),
    ) -> CommitHandle:
        """Apply a change that is known to be valid and send it on its way to disk.

        Args:
            change: writes to `document`; runs inside one transaction.
            blocks: every block that it changes, apart from those that it creates.
            undo: how its text counts for the actor's undo; None if not at all.
            blobs: stored with it, as the others, or neither is; see `PendingCommit`.
        """
        self._check_writer(actor, blocks)
        about = {"blobs": tuple(blobs), "file": file, "drift": drift, "inherited": inherited}
        return self._write(actor, operation, change, blocks, undo, **about)

    def set_fields(
        self,
        actor: Actor,
        operation: str,
        block: str,
        fields: Mapping[str, object],
        file: FileRow | None = None,
    ) -> CommitHandle:
        """Set fields of a block's header, as `write` does; nothing of it can be undone."""
        change = partial(self.document.set_fields, block, **fields)
        return self.write(actor, operation, change, blocks=[block], undo=None, file=file)

    async def prepare_append(self, block: str, section: str | None) -> None:
        """Make sure that the end of a text is known, so that `append` can write behind it."""
        if not self.document.tail_is_live(block, section):
            await self.history(block)

    def append(
        self, actor: Actor, block: str, text: str, section: str | None = None
    ) -> CommitHandle:
        """Write at the end of a text, also behind what has been removed there.

        Otherwise a deletion that is undone would stand between two appends, in the wrong order.
        """
        self._check_writer(actor, (block,))
        return self._append(actor, block, text, section, UndoKind.CALL)

    def apply_undo(
        self,
        actor: Actor,
        row: UndoRow,
        plan: UpdatePlan,
        blocks: Sequence[str],
        drift: DriftRow | None,
    ) -> CommitHandle:
        """Undo a unit, or do it again, on behalf of `actor`, as the histories of its blocks say.

        Args:
            plan: what has to be written in `blocks`.
            drift: of a unit that is one, with its new state. Blocks that it brought are hidden if
                nothing is left in them, and shown again.
        """
        self._check_writer(actor, blocks)
        clock, transaction, update = self._execute(actor, row.stack, plan, blocks)
        if drift is not None:
            with self.failing(), self.document.transaction(row.stack) as hiding:
                hide_blocks(self.document, blocks, drift)
            if hiding.update is not None:
                update = merge((update, hiding.update)) if update is not None else hiding.update
                headers = (*transaction.change.headers, *hiding.change.headers)
                transaction.change = replace(transaction.change, headers=headers)
        return self.commit(
            PendingCommit(
                actor,
                row.stack,
                transaction,
                update,
                stacks=self.undo.apply(row, self.seq + 1, self._clock.now_ms()),
                revivals=plan.revivals(self.document.client_id, clock),
                drift=drift,
            )
        )

    def restore(self, actor: Actor, block: str, plan: UpdatePlan) -> CommitHandle:
        """Give a text back what it was, as its history says: an edit like any other."""
        self._check_writer(actor, (block,))
        _, transaction, update = self._execute(actor, "restore", plan, (block,))
        return self.commit(PendingCommit(actor, "restore", transaction, update, UndoKind.CALL))

    def update_metadata(self, actor: Actor, operation: str, row: ContextRow) -> CommitHandle:
        """The context has another label, or is archived, or is not any more."""
        self._check_writer(actor, ())

        def change() -> None:
            self.document.set_meta(label=row.label, archived=iso_time_if(row.archived))
            self.row = row

        return self._write(actor, operation, change, (), restated=True)

    def ensure_member(self, actor: Actor) -> Member:
        """Make a principal, who may be a reader, known to the document; its name and colour."""
        if self.document.member(actor.principal.id) is None:
            self.raise_if_stopped()
            change = partial(introduce, self.document, actor.principal)
            self._write(actor, "join", change, ())
        member = self.document.member(actor.principal.id)
        assert member is not None
        return member

    def next_block_id(self, principal: PrincipalId) -> BlockId:
        """A fresh id for a block that this principal creates through a tool.

        Raises:
            AntiphonError: invalid_params, if the context is a file, which has one block.
        """
        assert not self.is_partial, "numbers of blocks that are not here are not known"
        if self.row.kind is ContextKind.FILE:
            raise invalid_params(
                f"The context {quote(self.label)} is a file of the project, which has one block:"
                " write into that one, or into the conversation.",
                field="context",
                found=self.label,
            )
        return self._numbering.next(principal)

    def _check_writer(self, actor: Actor, blocks: Sequence[str]) -> None:
        """Raise unless the context takes changes, and these blocks may be changed by the actor.

        Every change of a tool is checked here, in the moment of the write: whatever a tool has
        waited for, its caller has the right to write now.
        """
        self.guard.check_writer(actor)
        self.raise_if_stopped()
        for block in blocks:
            check_draft(self.document, block, actor.principal)

    def _write(
        self,
        actor: Actor,
        operation: str,
        change: Callable[[], None],
        blocks: Sequence[str],
        undo: UndoKind | None = None,
        **about: Any,
    ) -> CommitHandle:
        with self.failing():
            with self.document.transaction(operation) as transaction:
                change()
            _check_stated(transaction, blocks)
            update = with_member(self.document, actor, transaction)
        return self.commit(PendingCommit(actor, operation, transaction, update, undo, **about))

    def _append(
        self,
        actor: Actor,
        block: str,
        text: str,
        section: str | None,
        undo: UndoKind = UndoKind.STREAM,
    ) -> CommitHandle:
        """Write at the end of a text; text that was buffered is accepted, whatever has changed."""
        self.raise_if_stopped()
        known = self.histories.opened([block])
        if known is None or not text or self.document.tail_is_live(block, section):
            write = partial(self.document.append, block, text, section)
            return self._write(actor, "append", write, (block,), undo)
        plan = known[0].plan_append(section, text)
        _, transaction, update = self._execute(actor, "append", plan, (block,))
        written = self.commit(PendingCommit(actor, "append", transaction, update, undo))
        self.document.restore_live_tail(block, section)
        return written

    def _execute(
        self, actor: Actor, operation: str, plan: UpdatePlan, blocks: Sequence[str]
    ) -> tuple[int, Transaction, bytes | None]:
        """Change the contents of `blocks` as planned.

        Returns the clock with which that begins, what changed, and what has to be stored of it.
        """
        client = self.document.client_id
        clock = decode_state_vector(self.document.state_vector()).get(client, 0)
        with self.failing():
            transaction = self.document.apply_update(plan.update(client, clock), operation)
            _check_stated(transaction, blocks)
            update = with_member(self.document, actor, transaction)
        return clock, transaction, update

    # The way of every change to disk

    def commit(self, change: PendingCommit) -> CommitHandle:
        """Number a change that the document has taken in, and send it on its way to disk."""
        if change.update is None:
            return CommitHandle(self.seq, {}, self._last)
        update, added, source = change.update, change.added, change.source
        follow_up = follow_change(self.document, change.transaction.change, change.submitted)
        if follow_up is not None:
            update = merge((update, follow_up))
            added = merge((added, follow_up)) if added is not None else follow_up
        self.structure.follow(update)
        row = self._next_row(change, update)
        if self._later is not None:
            self._later.append((row.seq, update))
        on_disk = self._journal.commit(row)
        stop_forwarding()
        versions = {block.id: block.version for block in row.blocks}
        changes = tuple(self._changes)
        self._changes.clear()
        self.applied.notify(
            Applied(row.seq, row.time, change.actor, row.operation, changes, versions)
        )
        self.histories.follow(row.as_stored)
        broadcasts = [Broadcast(row.seq, update, source)]
        if source is not None and added is not None:
            # Its own update does not go back to a client, but what the kernel added does.
            broadcasts.append(Broadcast(row.seq, added, None))
        on_disk.add_done_callback(partial(self._after_commit, broadcasts, versions))
        self._last = on_disk
        return CommitHandle(row.seq, versions, on_disk)

    def _next_row(self, change: PendingCommit, update: bytes) -> Commit:
        """Return what is stored of a change, under the next number."""
        time = self._clock.now_ms()
        self.seq += 1
        stacks = change.stacks if change.stacks is not None else self._record_undo(change, time)
        touched = change.transaction.change.touched
        if change.submitted:
            touched = tuple(dict.fromkeys((*touched, *change.submitted)))
        rows = {block: self.blocks.advance(block) for block in touched}
        inherited = tuple(
            InheritedText(rows[block].number, section, tuple(runs), rows[block].version)
            for block, texts in change.inherited.items()
            for section, runs in texts.items()
            if runs
        )
        drift = change.drift
        if drift is not None and not drift.seq:
            drift = replace(drift, seq=self.seq)
        return Commit(
            context=self.row,
            seq=self.seq,
            time=time,
            actor=change.actor,
            operation=change.operation,
            blocks=tuple(rows.values()),
            update=update,
            unit=stacks.unit,
            undo=stacks.kept,
            dropped_undo=stacks.dropped,
            clients=change.clients,
            revivals=change.revivals,
            restated=change.restated,
            blobs=change.blobs,
            file=change.file,
            drift=drift,
            inherited=inherited,
            generation=self._generation,
        )

    def _record_undo(self, change: PendingCommit, time: int) -> StackChange:
        if change.undo is None:
            return NOTHING_RECORDED
        of_document = change.transaction.change
        written = {text.block for text in of_document.texts}
        if of_document.contents:
            written.update(content.block for content in of_document.contents)
        if of_document.added:
            # What a structured block begins with is its form, not something that somebody wrote.
            written.update(one for one in of_document.added if is_text(self.document.schema(one)))
        if not written:
            return NOTHING_RECORDED
        blocks = sorted(written)
        if change.drift is not None:
            blocks = [change.drift.block]
        return self.undo.record(change.actor, change.undo, blocks, change.keystroke, self.seq, time)

    def _after_commit(
        self,
        broadcasts: Sequence[Broadcast],
        versions: Mapping[str, int],
        future: asyncio.Future[None],
    ) -> None:
        if (error := future.exception()) is not None:
            assert isinstance(error, AntiphonError)
            self.stop(error)
            return
        self.blocks.persisted.update(versions)
        for broadcast in broadcasts:
            self.committed.notify(broadcast)

    def stop(self, error: AntiphonError) -> None:
        """Take nothing more: the document is not what is on disk, or will not be."""
        if self._failure is None:
            self._failure = error
            self.failed.notify(error)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Stop the context if what is done within fails: there is no roll-back.

        After a failure what is on disk is right, and read again.
        """
        try:
            yield
        except BaseException:
            self.stop(
                storage_failed(
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


@dataclass(frozen=True, slots=True)
class Submission:
    """A draft that has been sent, or a drift that has arrived: models are to answer it."""

    context: Context
    block: str
    text: str
    """Its text at that moment; others may have edited it since."""
    actor: Actor


def _refuse_replaced(*_: object) -> NoReturn:
    raise RuntimeError("a history of a document that has been replaced")


def _check_stated(transaction: Transaction, blocks: Sequence[str]) -> None:
    """Raise RuntimeError if a change went into a block that nobody has been asked about.

    Order keys are an exception: neighbours get others where there is no room between them.
    """
    change = transaction.change
    touched = {text.block for text in change.texts}
    touched.update(content.block for content in change.contents)
    touched.update(header.block for header in change.headers if header.fields != _ORDER)
    unstated = touched.difference(blocks, change.added)
    if unstated:
        raise RuntimeError(f"a write has changed {sorted(unstated)} without stating it")
