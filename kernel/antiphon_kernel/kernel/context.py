"""One context while it is open: its document, its journal, its outbox.

Every change goes the same way: it is applied to the document, handed to the journal, and when it is
on disk it is acknowledged and given to the subscribers, in the order of `seq`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pycrdt import merge_updates

from antiphon_kernel.document.changes import DocumentChange, Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.history.plan import Plan
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.journal.journal import Journal
from antiphon_kernel.journal.rows import (
    BlockChange,
    BlockRow,
    Commit,
    ContextRow,
    StoredContext,
    StoredOp,
    UndoRow,
)
from antiphon_kernel.kernel.admission import admit
from antiphon_kernel.kernel.commitment import Applied, Broadcast, Written
from antiphon_kernel.kernel.family import Family
from antiphon_kernel.kernel.header_rules import follow_change, normalise_draft
from antiphon_kernel.kernel.histories import Histories
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.kernel.numbering import Numbering
from antiphon_kernel.kernel.presence import Presence
from antiphon_kernel.kernel.structure import Structure
from antiphon_kernel.kernel.undo_stack import StackChange, UndoKind, UndoStacks
from antiphon_kernel.types.clock import Clock, iso_time
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import BlockId, ContextId, PrincipalId
from antiphon_kernel.types.records import COLOUR_SLOTS, Actor, Member
from antiphon_kernel.wire.revivals import Revival
from antiphon_kernel.wire.state_vector import decode_state_vector


class Context:
    """An open context. All methods belong to one event loop."""

    def __init__(
        self,
        stored: StoredContext,
        document: Document,
        journal: Journal,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self.document = document
        self.presence = Presence()
        self.limits = limits
        self.undo = UndoStacks(stored.undo, limits.undo_entries)
        self._row = stored.row
        self._generation = stored.generation
        self._journal = journal
        self._clock = clock
        self._seq = self._committed = stored.seq
        self._blocks = {row.id: row for row in stored.blocks}
        self._persisted = {row.id: row.version for row in stored.blocks}
        self._owners = dict(stored.clients)
        self._numbering = Numbering(stored.row.id, document.block_ids())
        self._subscribers: list[Callable[[Broadcast], None]] = []
        self._on_applied: list[Callable[[Applied], None]] = []
        self._changes: list[DocumentChange] = []
        document.watch(self._changes.append)
        self._on_failure: list[Callable[[AntiphonError], None]] = []
        self.histories = Histories(
            journal,
            stored.row,
            document,
            seq=lambda: self._seq,
            number_of=self.number,
            settled=self.settled,
        )
        self.structure = Structure(document)
        self._introduced: set[PrincipalId] = set()
        self.family = Family(document)
        self._last: asyncio.Future[None] | None = None
        self._failure: AntiphonError | None = None

    @property
    def id(self) -> ContextId:
        return self._row.id

    @property
    def row(self) -> ContextRow:
        """As the journal knows the context, or will when what is on its way is on disk."""
        return self._row

    @property
    def label(self) -> str:
        return self._row.label

    @property
    def epoch(self) -> str:
        return self._row.epoch

    @property
    def seq(self) -> int:
        """The version of the context: the number of its last transaction."""
        return self._seq

    def number(self, block: str) -> int:
        """What stands for a block in the journal."""
        return self._blocks[block].number

    def version(self, block: str) -> int:
        """How often a block has changed; 1 at creation."""
        row = self._blocks.get(block)
        return row.version if row is not None else 0

    def persisted_version(self, block: str) -> int:
        """The last version of a block that is on disk; 0 if there is none yet."""
        return self._persisted.get(block, 0)

    async def history(self, block: str) -> BlockHistory:
        """The history of a block's content, up to date with the document until the next await.

        Raises:
            AntiphonError: storage_failed.
        """
        return (await self.histories.open([block]))[0]

    async def changes(self, block: str) -> list[BlockChange]:
        """Every change of a block that is on disk, in order.

        Raises:
            AntiphonError: storage_failed.
        """
        return await self._journal.changes_of(self._row, self._blocks[block].number)

    # Writing

    def write(
        self,
        actor: Actor,
        operation: str,
        change: Callable[[], None],
        *,
        undo: UndoKind | None = UndoKind.CALL,
    ) -> Written:
        """Apply a change that is known to be valid and send it on its way to disk.

        Args:
            change: writes to `document`; runs inside one transaction.
            undo: how its text counts for the actor's undo; None if not at all.

        Raises:
            AntiphonError: storage_failed, if the context has been stopped by an earlier failure.
        """
        self._refuse_if_stopped()
        with self.document.transaction(operation) as transaction:
            self._introduce(actor)
            change()
        return self._commit(actor, operation, transaction, transaction.update, undo)

    def turn(self, actor: Actor, row: UndoRow, plan: Plan) -> Written:
        """Undo a unit, or do it again, on behalf of `actor`, as the histories of its blocks say.

        Raises:
            AntiphonError: storage_failed.
        """
        self._refuse_if_stopped()
        clock, transaction = self._carry_out(plan, row.stack)
        return self._commit(
            actor,
            row.stack,
            transaction,
            self._introducing(actor, transaction),
            None,
            stacks=self.undo.turn(row, self._seq + 1, self._clock.now_ms()),
            revivals=plan.revivals(self.document.client_id, clock),
        )

    def restore(self, actor: Actor, plan: Plan) -> Written:
        """Give a text back what it was, as its history says: an edit like any other.

        Raises:
            AntiphonError: storage_failed.
        """
        self._refuse_if_stopped()
        _, transaction = self._carry_out(plan, "restore")
        update = self._introducing(actor, transaction)
        return self._commit(actor, "restore", transaction, update, UndoKind.CALL)

    def _carry_out(self, plan: Plan, origin: str) -> tuple[int, Transaction]:
        """Change contents as planned; the clock with which what is written begins."""
        client = self.document.client_id
        clock = decode_state_vector(self.document.state_vector()).get(client, 0)
        return clock, self.document.apply_update(plan.update(client, clock), origin)

    def _introducing(self, actor: Actor, transaction: Transaction) -> bytes | None:
        """The update of a transaction, and with it who made it."""
        if transaction.update is None or actor.principal.id in self._introduced:
            return (
                transaction.update
            )  # whoever changes nothing is not introduced: it would not be in the journal
        with self.document.transaction("join") as introduced:
            self._introduce(actor)
        if introduced.update is None:
            return transaction.update
        return merge_updates(transaction.update, introduced.update)

    def apply_remote(
        self, actor: Actor, update: bytes, source: object, *, catching_up: bool = False
    ) -> asyncio.Future[int]:
        """Check and apply a raw update of a connected client; the future gives `seq` when on disk.

        Raises:
            AntiphonError: what `admit` refuses; storage_failed.
        """
        self._refuse_if_stopped()
        admitted = admit(
            self.document,
            actor,
            update,
            self._owners,
            self.structure.placement,
            self.limits,
            catching_up=catching_up,
        )
        if admitted.placed is None:
            return asyncio.ensure_future(self._seq_settled())
        update = admitted.update
        transaction = self.document.apply_update(update, origin=source)
        self.structure.adopt(update, admitted.placed)
        for client in admitted.clients:
            self._owners[client] = actor.principal.id
        raw = update if transaction.update is not None else None
        added = self._complete(actor, admitted.drafts)
        if raw is not None and added is not None:
            raw = merge_updates(raw, added)
        written = self._commit(
            actor,
            "sync",
            transaction,
            raw if raw is not None else added,
            UndoKind.TYPING,
            source=source,
            clients=admitted.clients,
            echo=added,
        )
        return written.seq_on_disk()

    def _complete(self, actor: Actor, drafts: Sequence[str]) -> bytes | None:
        """What the kernel adds to a client's update: who it is, and what drafts must say."""
        if not drafts and actor.principal.id in self._introduced:
            return None
        with self.document.transaction("draft") as completed:
            self._introduce(actor)
            for draft in drafts:
                normalise_draft(self.document, actor, draft)
        return completed.update

    def welcome(self, actor: Actor) -> Member:
        """Make a principal known to the context's document; its name and colour."""
        if self.document.member(actor.principal.id) is None:
            self.write(actor, "join", lambda: None, undo=None)
        member = self.document.member(actor.principal.id)
        assert member is not None
        return member

    def _introduce(self, actor: Actor) -> None:
        principal = actor.principal
        if principal.id in self._introduced:
            return
        self._introduced.add(principal.id)
        if self.document.member(principal.id) is not None:
            return
        taken = {member.colour for member in self.document.members()}
        free = [slot for slot in range(COLOUR_SLOTS) if slot not in taken]
        colour = free[0] if free else len(self.document.members()) % COLOUR_SLOTS
        member = Member(principal.id, principal.username, principal.kind, colour)
        self.document.set_member(member)

    def next_block_id(self, principal: PrincipalId) -> BlockId:
        """A fresh id for a block that this principal creates through a tool."""
        return self._numbering.next(principal)

    # Committing

    def _commit(
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
        stacks: StackChange | None = None,
        revivals: tuple[Revival, ...] = (),
        restated: bool = False,
    ) -> Written:
        if update is None:
            return Written(self._seq, {}, self._last or _done())
        follow_up = follow_change(self.document, transaction.change)
        if follow_up is not None:
            update = merge_updates(update, follow_up)
            echo = merge_updates(echo, follow_up) if echo is not None else follow_up
        self.structure.follow(update)
        touched = transaction.change.touched
        time = self._clock.now_ms()
        if stacks is None:
            stacks = self._record_undo(actor, transaction, undo, time)
        self._seq += 1
        rows = tuple(map(self._next_version, touched))
        on_disk = self._journal.commit(
            Commit(
                context=self._row,
                seq=self._seq,
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
            self._seq,
            time,
            actor,
            operation,
            tuple(self._changes),
            {row.id: row.version for row in rows},
        )
        self._changes.clear()
        for listener in tuple(self._on_applied):
            listener(applied)
        seq, versions = self._seq, {row.number: row.version for row in rows}
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
        broadcasts = [Broadcast(self._seq, update, source)]
        if source is not None and echo is not None:
            # Its own update does not go back to a client, but what the kernel added does.
            broadcasts.append(Broadcast(self._seq, echo, None))
        on_disk.add_done_callback(lambda future: self._after_commit(future, broadcasts, rows))
        self._last = on_disk
        return Written(self._seq, applied.versions, on_disk)

    def _record_undo(
        self, actor: Actor, transaction: Transaction, kind: UndoKind | None, time: int
    ) -> StackChange:
        change = transaction.change
        blocks = dict.fromkeys(text.block for text in change.texts)
        blocks.update(dict.fromkeys(content.block for content in change.contents))
        # What a structured block begins with is its form, not something that somebody wrote.
        new = [block for block in change.added if is_text(self.document.schema(block))]
        blocks.update(dict.fromkeys(new))
        if kind is None or not blocks:
            return StackChange()
        return self.undo.record(actor, kind, tuple(blocks), self._seq + 1, time)

    def _next_version(self, block: str) -> BlockRow:
        row = self._blocks.get(block)
        if row is None:
            row = BlockRow(len(self._blocks) + 1, block, 1)
        else:
            row = replace(row, version=row.version + 1)
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
            self._stop(error)
            return
        self._committed = broadcasts[0].seq
        self._persisted.update((row.id, row.version) for row in rows)
        for broadcast in broadcasts:
            for subscriber in tuple(self._subscribers):
                subscriber(broadcast)

    # Failing

    def on_failure(self, listener: Callable[[AntiphonError], None]) -> Callable[[], None]:
        """Call `listener` when a commit has failed: this object must not be used any more.

        Returns the way to stop.
        """
        self._on_failure.append(listener)
        return lambda: self._on_failure.remove(listener)

    def _stop(self, error: AntiphonError) -> None:
        if self._failure is None:
            self._failure = error
            for listener in tuple(self._on_failure):
                listener(error)

    def _refuse_if_stopped(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Let go of the document; what was handed to the journal is still written."""
        self._subscribers.clear()
        self.document.close()

    # Following

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

    def restate(self, actor: Actor, operation: str, row: ContextRow) -> Written:
        """The context has another label, or is archived, or is not any more.

        Raises:
            AntiphonError: storage_failed.
        """
        self._refuse_if_stopped()
        with self.document.transaction(operation) as transaction:
            self._introduce(actor)
            archived = iso_time(row.archived) if row.archived is not None else None
            self.document.set_meta(label=row.label, archived=archived)
        self._row = row
        return self._commit(actor, operation, transaction, transaction.update, None, restated=True)

    async def _seq_settled(self) -> int:
        seq = self._seq
        await self.settled()
        return seq

    async def committed_state(self, state_vector: bytes | None) -> bytes:
        """The update that brings a peer up to date; everything in it is on disk."""
        update = self.document.update_since(state_vector)
        await self.settled()
        return update


def _done() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future
