"""One context while it is open: its document, its journal, its outbox.

Every change goes the same way: it is applied to the document, handed to the journal, and when it is
on disk it is acknowledged and given to the subscribers, in the order of `seq`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain

from antiphon_kernel.document.changes import Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.history.plan import Plan
from antiphon_kernel.journal.journal import Journal
from antiphon_kernel.journal.rows import (
    BlockChange,
    ContextRow,
    StoredContext,
    UndoRow,
)
from antiphon_kernel.kernel.admission.admission import Admitted, admit
from antiphon_kernel.kernel.admission.placement import Placement
from antiphon_kernel.kernel.admission.slicing import Part, check_by_and_by
from antiphon_kernel.kernel.admission.structure import Structure
from antiphon_kernel.kernel.context.append_buffer import AppendBuffers
from antiphon_kernel.kernel.context.arrivals import Arrivals
from antiphon_kernel.kernel.context.commitment import (
    Applied,
    Broadcast,
    Change,
    HandedIn,
    Written,
)
from antiphon_kernel.kernel.context.commits import Commits
from antiphon_kernel.kernel.context.family import Family
from antiphon_kernel.kernel.context.header_rules import normalise_draft, submit_draft
from antiphon_kernel.kernel.context.histories import Histories
from antiphon_kernel.kernel.context.introductions import Introductions
from antiphon_kernel.kernel.context.numbering import Numbering
from antiphon_kernel.kernel.context.presence import Presence
from antiphon_kernel.kernel.context.undo_stack import UndoKind, UndoStacks
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.types.clock import Clock, iso_time_if
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import BlockId, ContextId, PrincipalId
from antiphon_kernel.types.records import Actor, Member
from antiphon_kernel.wire.merge import merge
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
        self.structure = Structure(document)
        self.family = Family(document)
        self._journal = journal
        self._clock = clock
        self.appends = AppendBuffers(self.append, limits)
        """Streamed appends that are not in the document yet."""
        self._commits = Commits(
            stored, document, self.structure, journal, clock, limits.undo_entries
        )
        self._introductions = Introductions(document)
        self.arrivals = Arrivals()
        self._owners = dict(stored.clients)
        self._on_submitted: list[Callable[[str, Actor], None]] = []
        self._numbering = Numbering(stored.row.id, document.block_ids())

    @property
    def id(self) -> ContextId:
        return self.row.id

    @property
    def row(self) -> ContextRow:
        """As the journal knows the context, or will when what is on its way is on disk."""
        return self._commits.row

    @property
    def label(self) -> str:
        return self.row.label

    @property
    def epoch(self) -> str:
        return self.row.epoch

    @property
    def seq(self) -> int:
        """The version of the context: the number of its last transaction."""
        return self._commits.seq

    @property
    def undo(self) -> UndoStacks:
        """What everybody can undo and redo."""
        return self._commits.undo

    @property
    def histories(self) -> Histories:
        """What the contents of the blocks have been."""
        return self._commits.histories

    def number(self, block: str) -> int:
        """What stands for a block in the journal."""
        return self._commits.number(block)

    def version(self, block: str) -> int:
        """How often a block has changed; 1 at creation, 0 if there is no such block."""
        return self._commits.version(block)

    def persisted_version(self, block: str) -> int:
        """The last version of a block that is on disk; 0 if there is none yet."""
        return self._commits.persisted_version(block)

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
        return await self._journal.changes_of(self.row, self.number(block))

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
        self._commits.refuse_if_stopped()
        with self._never_half():
            with self.document.transaction(operation) as transaction:
                change()
            update = self._introductions.with_introduction(actor, transaction)
        return self._commits.commit(Change(actor, operation, transaction, update, undo))

    @contextmanager
    def _never_half(self) -> Iterator[None]:
        """There is no roll-back: after a failure what is on disk is right, and read again."""
        try:
            yield
        except BaseException:
            self._commits.stop(
                AntiphonError(
                    ErrorCode.STORAGE_FAILED,
                    f"A change of context {self.label} failed half-way, so the context is read"
                    " again as it is on disk: call once more.",
                )
            )
            raise

    async def prepare_append(self, block: str, section: str | None) -> None:
        """Make sure that the end of a text is known, so that `append` can write behind it.

        Raises:
            AntiphonError: storage_failed.
        """
        if not self.document.has_clear_end(block, section):
            await self.history(block)

    def append(self, actor: Actor, block: str, text: str, section: str | None = None) -> Written:
        """Write at the end of a text, also behind what has been removed there.

        Otherwise a deletion that is undone would stand between two appends, in the wrong order.

        Raises:
            AntiphonError: storage_failed.
        """
        known = self.histories.opened([block])
        if known is None or not text or self.document.has_clear_end(block, section):
            return self.write(
                actor,
                "append",
                lambda: self.document.append(block, text, section),
                undo=UndoKind.STREAM,
            )
        written = self._edit(actor, "append", known[0].plan_append(section, text), UndoKind.STREAM)
        self.document.clear_end(block, section)
        return written

    def turn(self, actor: Actor, row: UndoRow, plan: Plan) -> Written:
        """Undo a unit, or do it again, on behalf of `actor`, as the histories of its blocks say.

        Raises:
            AntiphonError: storage_failed.
        """
        self._commits.refuse_if_stopped()
        clock, transaction = self._carry_out(plan, row.stack)
        return self._commits.commit(
            Change(
                actor,
                row.stack,
                transaction,
                self._introductions.with_introduction(actor, transaction),
                stacks=self.undo.turn(row, self.seq + 1, self._clock.now_ms()),
                revivals=plan.revivals(self.document.client_id, clock),
            )
        )

    def restore(self, actor: Actor, plan: Plan) -> Written:
        """Give a text back what it was, as its history says: an edit like any other.

        Raises:
            AntiphonError: storage_failed.
        """
        return self._edit(actor, "restore", plan, UndoKind.CALL)

    def _edit(self, actor: Actor, operation: str, plan: Plan, undo: UndoKind) -> Written:
        self._commits.refuse_if_stopped()
        _, transaction = self._carry_out(plan, operation)
        update = self._introductions.with_introduction(actor, transaction)
        return self._commits.commit(Change(actor, operation, transaction, update, undo))

    def _carry_out(self, plan: Plan, origin: str) -> tuple[int, Transaction]:
        """Change contents as planned; the clock with which what is written begins."""
        client = self.document.client_id
        clock = decode_state_vector(self.document.state_vector()).get(client, 0)
        return clock, self.document.apply_update(plan.update(client, clock), origin)

    def apply_remote(
        self, actor: Actor, update: bytes, source: object, *, catching_up: bool = False
    ) -> asyncio.Future[int]:
        """Check and apply a raw update of a connected client; the future gives `seq` when on disk.

        Raises:
            AntiphonError: what `admit` refuses; storage_failed; gap, while an accepted update of
                the same principal is going in, which it might build on.
        """
        self._commits.refuse_if_stopped()
        self.arrivals.refuse_to_overtake(actor)
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
        return self._apply(actor, admitted, admitted.placed, source)

    def _apply(
        self, actor: Actor, admitted: Admitted, placed: Placement, source: object
    ) -> asyncio.Future[int]:
        """Apply what may be applied; the future gives `seq` when it is on disk."""
        if not admitted.is_text:
            # What it removes is behind what has been appended before.
            self.appends.flush_all()
        update = admitted.update
        known = [block for block in admitted.submitted if block not in admitted.drafts]
        before = {block: self.document.header(block).status for block in known}
        with self._never_half():
            transaction = self.document.apply_update(update, source, is_text=admitted.is_text)
            self.structure.adopt(update, placed, transaction.deleted)
            for client in admitted.clients:
                self._owners[client] = actor.principal.id
            raw = update if transaction.update is not None else None
            added, submitted = self._complete(actor, admitted, before)
        if raw is not None and added is not None:
            raw = merge((raw, added))
        written = self._commits.commit(
            Change(
                actor,
                "sync",
                transaction,
                raw if raw is not None else added,
                UndoKind.TYPING,
                handed_in=HandedIn(source, admitted.clients, added, submitted),
            )
        )
        for block in submitted:
            written.on_disk.add_done_callback(partial(self._tell_submitted, block, actor))
        return written.seq_on_disk()

    async def take_in(
        self,
        actor: Actor,
        update: bytes,
        source: object,
        *,
        is_welcome: Callable[[], None],
        catching_up: bool = False,
    ) -> asyncio.Future[int]:
        """The same for an update that may be large: others work while it is checked and applied.

        It is accepted or refused whole, at one moment. Once accepted it goes in, also if this is
        cancelled, and raw updates of the same principal have to wait for that; see `arrivals`.

        Args:
            is_welcome: raises if the actor, while the update was checked, has lost the right to
                write; called in the moment of acceptance.

        Raises:
            AntiphonError: what `admit` refuses; storage_failed.
        """
        async with self.arrivals.turn(actor):
            await self.structure.read()
            self._commits.refuse_if_stopped()
            large = await check_by_and_by(
                self.document,
                actor,
                update,
                self._owners,
                self.structure.placement,
                self.limits,
                catching_up=catching_up,
            )
            is_welcome()
            if large is None:
                return self.apply_remote(actor, update, source, catching_up=catching_up)
            self._commits.refuse_if_stopped()
            parts = large.accept()
            if not parts:
                return asyncio.ensure_future(self._seq_settled())
            for client in chain.from_iterable(part.admitted.clients for part in parts):
                self._owners[client] = actor.principal.id
            arrival = self.arrivals.begin(actor, parts, partial(self._take_part, actor, source))
        return await asyncio.shield(arrival)

    def _take_part(self, actor: Actor, source: object, part: Part) -> asyncio.Future[int]:
        """Apply a part of an update that has been accepted."""
        self._commits.refuse_if_stopped()
        placed = part.placed(self.structure.placement)
        return self._apply(actor, part.admitted, placed, source)

    def _complete(
        self, actor: Actor, admitted: Admitted, before: Mapping[str, Status | str]
    ) -> tuple[bytes | None, tuple[str, ...]]:
        """What the kernel adds to a client's update: who it is, and what drafts must say.

        Args:
            before: the status that submitted drafts had.

        Returns the update with it, and the drafts that are submitted.
        """
        document, drafts = self.document, admitted.drafts
        due = [
            block
            for block in admitted.submitted
            if block in before or document.header(block).status == Status.DONE
        ]
        if not due and not drafts and self._introductions.knows(actor):
            return None, ()
        with document.transaction("draft") as completed:
            self._introductions.introduce(actor)
            for draft in drafts:
                normalise_draft(document, actor, draft, submitted=draft in due)
            done = [
                block
                for block in due
                if submit_draft(document, block, Status(before.get(block, Status.PENDING)))
            ]
        return completed.update, tuple(done)

    def _tell_submitted(self, block: str, actor: Actor, on_disk: asyncio.Future[None]) -> None:
        if on_disk.exception() is None:
            for listener in tuple(self._on_submitted):
                listener(block, actor)

    def on_submitted(self, listener: Callable[[str, Actor], None]) -> None:
        """Call `listener` when somebody's draft, submitted by a raw update, is on disk."""
        self._on_submitted.append(listener)

    def welcome(self, actor: Actor) -> Member:
        """Make a principal known to the context's document; its name and colour."""
        if self.document.member(actor.principal.id) is None:
            self.write(actor, "join", lambda: self._introductions.introduce(actor), undo=None)
        member = self.document.member(actor.principal.id)
        assert member is not None
        return member

    def next_block_id(self, principal: PrincipalId) -> BlockId:
        """A fresh id for a block that this principal creates through a tool."""
        return self._numbering.next(principal)

    def restate(self, actor: Actor, operation: str, row: ContextRow) -> Written:
        """The context has another label, or is archived, or is not any more.

        Raises:
            AntiphonError: storage_failed.
        """
        self._commits.refuse_if_stopped()
        with self.document.transaction(operation) as transaction:
            self._introductions.introduce(actor)
            archived = iso_time_if(row.archived)
            self.document.set_meta(label=row.label, archived=archived)
        self._commits.row = row
        return self._commits.commit(
            Change(actor, operation, transaction, transaction.update, restated=True)
        )

    # Following

    def subscribe(self, listener: Callable[[Broadcast], None]) -> Callable[[], None]:
        """Call `listener` with each change once it is on disk; returns the way to stop."""
        return self._commits.subscribe(listener)

    def on_applied(self, listener: Callable[[Applied], None]) -> Callable[[], None]:
        """Call `listener` with each change when it is applied, not on disk yet.

        What it learns is to be told to nobody before the broadcast of the same `seq`. Returns the
        way to stop.
        """
        return self._commits.on_applied(listener)

    def on_failure(self, listener: Callable[[AntiphonError], None]) -> Callable[[], None]:
        """Call `listener` when a commit has failed: this object must not be used any more.

        Returns the way to stop.
        """
        return self._commits.on_failure(listener)

    async def settled(self) -> None:
        """Wait until everything that has been applied so far is on disk.

        Raises:
            AntiphonError: storage_failed.
        """
        await self._commits.settled()

    async def _seq_settled(self) -> int:
        seq = self.seq
        await self.settled()
        return seq

    async def committed_state(self, state_vector: bytes | None) -> bytes:
        """The update that brings a peer up to date; everything in it is on disk."""
        update = self.document.update_since(state_vector)
        await self.settled()
        return update

    def close(self) -> None:
        """Let go of the document; what was handed to the journal is still written."""
        self._commits.close()
        self.document.close()
