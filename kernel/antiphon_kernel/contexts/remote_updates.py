"""Validation, application and completion of connected clients' raw updates to a context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain

from antiphon_kernel.contexts.append_buffer import AppendBuffers
from antiphon_kernel.contexts.commit_types import ClientOrigin, PendingCommit
from antiphon_kernel.contexts.commits import Commits
from antiphon_kernel.contexts.header_rules import normalise_draft, submit_draft
from antiphon_kernel.contexts.in_flight import InFlightUpdates
from antiphon_kernel.contexts.member_registry import MemberRegistry
from antiphon_kernel.contexts.undo_stack import UndoKind
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import (
    Chunk,
    ItemIndex,
    LazyItemIndex,
    ValidatedUpdate,
    validate,
    validate_incrementally,
)
from antiphon_kernel.yjs.merge import merge


class RemoteUpdates:
    """The way of a raw update into one context. Belongs to one event loop."""

    def __init__(
        self,
        document: Document,
        structure: LazyItemIndex,
        commits: Commits,
        introductions: MemberRegistry,
        appends: AppendBuffers,
        owners: Mapping[int, str],
        limits: Limits,
    ) -> None:
        """`owners` says whose the CRDT client ids are that have written so far."""
        self.arrivals = InFlightUpdates()
        """Large updates on their way in."""
        self.limits = limits
        self._document = document
        self._structure = structure
        self._commits = commits
        self._introductions = introductions
        self._appends = appends
        self._owners = dict(owners)
        self._on_submitted: list[Callable[[str, str, Actor], None]] = []

    def apply(
        self, actor: Actor, update: bytes, source: object, *, catching_up: bool = False
    ) -> asyncio.Future[int]:
        """Check and apply a raw update of a connected client; the future gives `seq` when on disk.

        Raises:
            AntiphonError: what `validate` refuses; storage_failed; gap, while an accepted update of
                the same principal is going in, which it might build on.
        """
        self._commits.raise_if_stopped()
        self.arrivals.reject_overtaking(actor)
        admitted = validate(
            self._document,
            actor,
            update,
            self._owners,
            self._structure.placement,
            self.limits,
            catching_up=catching_up,
        )
        if admitted.placed is None:
            return asyncio.ensure_future(self._wait_persisted())
        return self._apply(actor, admitted, admitted.placed, source)

    def _apply(
        self, actor: Actor, admitted: ValidatedUpdate, placed: ItemIndex, source: object
    ) -> asyncio.Future[int]:
        """Apply what may be applied; the future gives `seq` when it is on disk."""
        if not admitted.is_text:
            # What it removes is behind what has been appended before.
            self._appends.flush_all()
        update = admitted.update
        known = [block for block in admitted.submitted if block not in admitted.drafts]
        before = {block: self._document.header(block).status for block in known}
        with self._commits.fail_context_on_error():
            transaction = self._document.apply_update(update, source, is_text=admitted.is_text)
            self._structure.commit(update, placed, transaction.deleted)
            for client in admitted.clients:
                self._owners[client] = actor.principal.id
            raw = update if transaction.update is not None else None
            added, submitted = self._complete(actor, admitted, before)
        if raw is not None and added is not None:
            raw = merge((raw, added))
        written = self._commits.commit(
            PendingCommit(
                actor,
                "sync",
                transaction,
                raw if raw is not None else added,
                UndoKind.TYPING,
                handed_in=ClientOrigin(source, admitted.clients, added, submitted),
            )
        )
        for block in submitted:
            said = self._document.text(block)
            written.on_disk.add_done_callback(partial(self._notify_submitted, block, said, actor))
        return written.seq_on_disk()

    async def apply_chunks(
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
            AntiphonError: what `validate` refuses; storage_failed.
        """
        async with self.arrivals.turn(actor):
            await self._structure.read()
            self._commits.raise_if_stopped()
            large = await validate_incrementally(
                self._document,
                actor,
                update,
                self._owners,
                self._structure.placement,
                self.limits,
                catching_up=catching_up,
            )
            is_welcome()
            if large is None:
                return self.apply(actor, update, source, catching_up=catching_up)
            self._commits.raise_if_stopped()
            parts = large.accept()
            if not parts:
                return asyncio.ensure_future(self._wait_persisted())
            for client in chain.from_iterable(part.admitted.clients for part in parts):
                self._owners[client] = actor.principal.id
            arrival = self.arrivals.start(actor, parts, partial(self._apply_chunk, actor, source))
        return await asyncio.shield(arrival)

    def _apply_chunk(self, actor: Actor, source: object, part: Chunk) -> asyncio.Future[int]:
        """Apply a part of an update that has been accepted."""
        self._commits.raise_if_stopped()
        placed = part.placed(self._structure.placement)
        return self._apply(actor, part.admitted, placed, source)

    def _complete(
        self, actor: Actor, admitted: ValidatedUpdate, before: Mapping[str, Status | str]
    ) -> tuple[bytes | None, tuple[str, ...]]:
        """What the kernel adds to a client's update: who it is, and what drafts must say.

        Args:
            before: the status that submitted drafts had.

        Returns the update with it, and the drafts that are submitted.
        """
        document, drafts = self._document, admitted.drafts
        due = [
            block
            for block in admitted.submitted
            if block in before or document.header(block).status == Status.DONE
        ]
        if not due and not drafts and self._introductions.knows(actor):
            return None, ()
        with document.transaction("draft") as completed:
            self._introductions.ensure_member(actor)
            for draft in drafts:
                normalise_draft(document, actor, draft, submitted=draft in due)
            done = [
                block
                for block in due
                if submit_draft(document, block, Status(before.get(block, Status.PENDING)))
            ]
        return completed.update, tuple(done)

    def _notify_submitted(
        self, block: str, said: str, actor: Actor, on_disk: asyncio.Future[None]
    ) -> None:
        if on_disk.exception() is None:
            for listener in tuple(self._on_submitted):
                listener(block, said, actor)

    def on_submitted(self, listener: Callable[[str, str, Actor], None]) -> None:
        """Call `listener` when somebody's draft, submitted by a raw update, is on disk.

        It is given the block, what it said when it was submitted, and who submitted it.
        """
        self._on_submitted.append(listener)

    async def _wait_persisted(self) -> int:
        seq = self._commits.seq
        await self._commits.wait_persisted()
        return seq
