"""One context while it is open: its document, its journal, its outbox.

Every change goes the same way: it is applied to the document, handed to the journal, and when it is
on disk it is acknowledged and given to the subscribers, in the order of `seq`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from antiphon_kernel.access import check_draft
from antiphon_kernel.contexts.append_buffer import AppendBuffers
from antiphon_kernel.contexts.block_ids import BlockIds
from antiphon_kernel.contexts.block_tree import BlockTree
from antiphon_kernel.contexts.commit_types import (
    CommitHandle,
    PendingCommit,
)
from antiphon_kernel.contexts.commits import Commits
from antiphon_kernel.contexts.history_cache import HistoryCache
from antiphon_kernel.contexts.member_registry import MemberRegistry
from antiphon_kernel.contexts.presence import Presence
from antiphon_kernel.contexts.remote_updates import RemoteUpdates
from antiphon_kernel.contexts.undo_stack import UndoKind, UndoStacks
from antiphon_kernel.document.changes import Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.history.update_builder import UpdatePlan
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import BlockChangeRow, ContextRow, Journal, StoredContext, UndoRow
from antiphon_kernel.types.clock import Clock, iso_time_if
from antiphon_kernel.types.ids import BlockId, ContextId, PrincipalId
from antiphon_kernel.types.records import Actor, Member
from antiphon_kernel.validation import LazyItemIndex
from antiphon_kernel.yjs.state_vector import decode_state_vector

_ORDER: Final = frozenset({"order"})


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
        self.structure = LazyItemIndex(document)
        self.family = BlockTree(document)
        self._journal = journal
        self._clock = clock
        self.appends = AppendBuffers(self.append, self._check_writer, limits)
        """Streamed appends that are not in the document yet."""
        self.commits = Commits(
            stored, document, self.structure, journal, clock, limits.undo_entries
        )
        """What has been committed, and who is told."""
        self._introductions = MemberRegistry(document)
        self.remote = RemoteUpdates(
            document,
            self.structure,
            self.commits,
            self._introductions,
            self.appends,
            stored.clients,
            limits,
        )
        """What connected clients write."""
        self._numbering = BlockIds(stored.row.id, document.block_ids())

    @property
    def id(self) -> ContextId:
        return self.row.id

    @property
    def row(self) -> ContextRow:
        """As the journal knows the context, or will when what is on its way is on disk."""
        return self.commits.row

    @property
    def label(self) -> str:
        return self.row.label

    @property
    def epoch(self) -> str:
        return self.row.epoch

    @property
    def seq(self) -> int:
        """The version of the context: the number of its last transaction."""
        return self.commits.seq

    @property
    def undo(self) -> UndoStacks:
        """Undo and redo stacks of everybody."""
        return self.commits.undo

    @property
    def histories(self) -> HistoryCache:
        """Content histories of the blocks."""
        return self.commits.histories

    def number(self, block: str) -> int:
        """Return the journal's number of a block."""
        return self.commits.number(block)

    def version(self, block: str) -> int:
        """Return the change count of a block; 1 at creation, 0 if there is no such block."""
        return self.commits.version(block)

    async def history(self, block: str) -> BlockHistory:
        """The history of a block's content, up to date with the document until the next await.

        Raises:
            AntiphonError: storage_failed.
        """
        return (await self.histories.open([block]))[0]

    async def changes(self, block: str) -> list[BlockChangeRow]:
        """Every change of a block that is on disk, in order.

        Raises:
            AntiphonError: storage_failed.
        """
        return await self._journal.changes_of(self.row, self.number(block))

    # Writing

    @property
    def is_writable(self) -> bool:
        """False once the kernel cannot save anything more."""
        return self._journal.lost is None

    def write(
        self,
        actor: Actor,
        operation: str,
        change: Callable[[], None],
        *,
        blocks: Sequence[str],
        undo: UndoKind | None = UndoKind.CALL,
    ) -> CommitHandle:
        """Apply a change that is known to be valid and send it on its way to disk.

        Args:
            change: writes to `document`; runs inside one transaction.
            blocks: every block that it changes, apart from those that it creates.
            undo: how its text counts for the actor's undo; None if not at all.

        Raises:
            AntiphonError: permission_denied, if one of the blocks is somebody else's draft;
                storage_failed, if the context has been stopped by an earlier failure.
        """
        self._check_writer(actor, blocks)
        with self.commits.fail_context_on_error():
            with self.document.transaction(operation) as transaction:
                change()
            _check_stated(transaction, blocks)
            update = self._introductions.with_member(actor, transaction)
        return self.commits.commit(PendingCommit(actor, operation, transaction, update, undo))

    async def prepare_append(self, block: str, section: str | None) -> None:
        """Make sure that the end of a text is known, so that `append` can write behind it.

        Raises:
            AntiphonError: storage_failed.
        """
        if not self.document.tail_is_live(block, section):
            await self.history(block)

    def append(
        self, actor: Actor, block: str, text: str, section: str | None = None
    ) -> CommitHandle:
        """Write at the end of a text, also behind what has been removed there.

        Otherwise a deletion that is undone would stand between two appends, in the wrong order.

        Raises:
            AntiphonError: storage_failed.
        """
        known = self.histories.opened([block])
        if known is None or not text or self.document.tail_is_live(block, section):
            return self.write(
                actor,
                "append",
                lambda: self.document.append(block, text, section),
                blocks=[block],
                undo=UndoKind.STREAM,
            )
        plan = known[0].plan_append(section, text)
        written = self._edit(actor, "append", block, plan, UndoKind.STREAM)
        self.document.restore_live_tail(block, section)
        return written

    def apply_undo(
        self, actor: Actor, row: UndoRow, plans: Mapping[str, UpdatePlan]
    ) -> CommitHandle:
        """Undo a unit, or do it again, on behalf of `actor`, as the histories of its blocks say.

        Args:
            plans: for each block that changes, what has to be written there.

        Raises:
            AntiphonError: permission_denied, if one of the blocks is somebody else's draft;
                storage_failed.
        """
        plan = sum(plans.values(), UpdatePlan())
        clock, transaction, update = self._execute(actor, row.stack, plan, tuple(plans))
        return self.commits.commit(
            PendingCommit(
                actor,
                row.stack,
                transaction,
                update,
                stacks=self.undo.apply(row, self.seq + 1, self._clock.now_ms()),
                revivals=plan.revivals(self.document.client_id, clock),
            )
        )

    def restore(self, actor: Actor, block: str, plan: UpdatePlan) -> CommitHandle:
        """Give a text back what it was, as its history says: an edit like any other.

        Raises:
            AntiphonError: permission_denied, if the block is somebody else's draft;
                storage_failed.
        """
        return self._edit(actor, "restore", block, plan, UndoKind.CALL)

    def _edit(
        self, actor: Actor, operation: str, block: str, plan: UpdatePlan, undo: UndoKind
    ) -> CommitHandle:
        _, transaction, update = self._execute(actor, operation, plan, (block,))
        return self.commits.commit(PendingCommit(actor, operation, transaction, update, undo))

    def _execute(
        self, actor: Actor, operation: str, plan: UpdatePlan, blocks: Sequence[str]
    ) -> tuple[int, Transaction, bytes | None]:
        """Change the contents of `blocks` as planned.

        Returns the clock with which what is written begins, what changed, and all that has to be
        stored of it.
        """
        self._check_writer(actor, blocks)
        client = self.document.client_id
        clock = decode_state_vector(self.document.state_vector()).get(client, 0)
        with self.commits.fail_context_on_error():
            transaction = self.document.apply_update(plan.update(client, clock), operation)
            _check_stated(transaction, blocks)
            update = self._introductions.with_member(actor, transaction)
        return clock, transaction, update

    def _check_writer(self, actor: Actor, blocks: Sequence[str]) -> None:
        """Raise unless the context takes changes, and these blocks may be changed by the actor."""
        self.commits.raise_if_stopped()
        for block in blocks:
            check_draft(self.document, block, actor.principal)

    def ensure_member(self, actor: Actor) -> Member:
        """Make a principal known to the context's document; its name and colour."""
        if self.document.member(actor.principal.id) is None:
            self.write(
                actor,
                "join",
                lambda: self._introductions.ensure_member(actor),
                blocks=(),
                undo=None,
            )
        member = self.document.member(actor.principal.id)
        assert member is not None
        return member

    def next_block_id(self, principal: PrincipalId) -> BlockId:
        """A fresh id for a block that this principal creates through a tool."""
        return self._numbering.next(principal)

    def update_metadata(self, actor: Actor, operation: str, row: ContextRow) -> CommitHandle:
        """The context has another label, or is archived, or is not any more.

        Raises:
            AntiphonError: storage_failed.
        """
        self.commits.raise_if_stopped()
        with (
            self.commits.fail_context_on_error(),
            self.document.transaction(operation) as transaction,
        ):
            self._introductions.ensure_member(actor)
            archived = iso_time_if(row.archived)
            self.document.set_meta(label=row.label, archived=archived)
        self.commits.row = row
        return self.commits.commit(
            PendingCommit(actor, operation, transaction, transaction.update, restated=True)
        )

    async def wait_persisted(self) -> None:
        """Wait until everything that has been applied so far is on disk.

        Raises:
            AntiphonError: storage_failed.
        """
        await self.commits.wait_persisted()

    async def committed_state(self, state_vector: bytes | None) -> bytes:
        """The update that brings a peer up to date; everything in it is on disk."""
        update = self.document.update_since(state_vector)
        await self.wait_persisted()
        return update

    def close(self) -> None:
        """Let go of the document; what was handed to the journal is still written."""
        self.commits.close()
        self.document.close()


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
