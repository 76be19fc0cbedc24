"""Raw updates of connected clients: checked, completed, and applied to a context."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import chain

from antiphon_kernel.contexts.commit_types import PendingCommit
from antiphon_kernel.contexts.context import Context, Submission
from antiphon_kernel.contexts.header_rules import normalise_draft, submit_draft
from antiphon_kernel.contexts.introductions import introduce
from antiphon_kernel.contexts.undo_stack import Keystroke, UndoKind
from antiphon_kernel.types.enums import ContextKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import (
    Chunk,
    ItemIndex,
    UpdateScope,
    ValidatedUpdate,
    validate,
    validate_incrementally,
)
from antiphon_kernel.yjs.merge import merge
from antiphon_kernel.yjs.update import DecodedUpdate, decode_update


class PartialContextError(Exception):
    """A context holds its last blocks only, and more is needed: see `Context.whole`."""


def apply_update(
    context: Context,
    actor: Actor,
    update: bytes,
    source: object,
    *,
    decoded: DecodedUpdate | None = None,
    catching_up: bool = False,
) -> asyncio.Future[None]:
    """Check and apply a raw update of a connected client; the future ends when it is on disk.

    Whoever waits for it has to shield it: others wait for the same. `decoded` is what it says.

    Raises:
        AntiphonError: what `validate` refuses; permission_denied, if the session has been
            dismissed; storage_failed; gap, while an accepted update of the same principal is
            going in, which it might build on.
        PartialContextError: if it can concern more than the texts of blocks that are here.
    """
    context.guard.check_session(actor)
    context.raise_if_stopped()
    if context.in_flight.has(actor):
        raise AntiphonError(
            ErrorCode.GAP,
            f"A large update of {actor.principal.username} is still going in: wait until it is"
            " there, then send everything since the state vector that follows.",
        )
    if context.is_partial:
        try:
            decoded = decoded or decode_update(update)
            if not context.structure.item_index.edits_texts(decoded):
                raise PartialContextError
        except ValueError:
            raise PartialContextError from None
    scope = _scope(context, actor)
    validated = validate(scope, update, decoded=decoded, catching_up=catching_up)
    if validated.placed is None:
        return asyncio.ensure_future(context.wait_persisted())
    return _apply(context, actor, validated, validated.placed, source)


async def apply_large_update(
    context: Context, actor: Actor, update: bytes, source: object, *, catching_up: bool = False
) -> asyncio.Future[None]:
    """The same for an update that may be large: others work while it is checked and applied.

    It is accepted or refused whole, at one moment. Once accepted it goes in, also if this is
    cancelled, and raw updates of the same principal have to wait for that; see `in_flight`.

    Raises the same, but for gap, also if the session is dismissed while the update is checked.
    """
    async with context.in_flight.turn(actor):
        await context.whole()
        await context.read_structure()
        context.raise_if_stopped()
        scope = _scope(context, actor)
        large = await validate_incrementally(scope, update, catching_up=catching_up)
        if large is None:
            return apply_update(context, actor, update, source, catching_up=catching_up)
        context.guard.check_session(actor)
        context.raise_if_stopped()
        check, parts = large
        check.confirm()
        if not parts:
            return asyncio.ensure_future(context.wait_persisted())
        for client in chain.from_iterable(part.validated.clients for part in parts):
            context.client_owners[client] = actor.principal.id

        def take_in(part: Chunk) -> asyncio.Future[None]:
            context.raise_if_stopped()
            placed = part.placed(context.structure.item_index)
            return _apply(context, actor, part.validated, placed, source)

        arrival = context.in_flight.start(actor, parts, take_in)
    return await asyncio.shield(arrival)


def _scope(context: Context, actor: Actor) -> UpdateScope:
    owners, item_index = context.client_owners, context.structure.item_index
    has_drafts = context.row.kind is not ContextKind.FILE
    return UpdateScope(
        context.document, actor, owners, item_index, context.limits, has_drafts=has_drafts
    )


def _apply(
    context: Context, actor: Actor, validated: ValidatedUpdate, placed: ItemIndex, source: object
) -> asyncio.Future[None]:
    """Apply what may be applied; the future ends when it is on disk."""
    document = context.document
    if not validated.is_text:
        # What it removes is behind what has been appended before.
        context.appends.flush_all()
    update = validated.update
    known = [block for block in validated.submitted if block not in validated.drafts]
    before = {block: document.header(block).status for block in known}
    with context.failing():
        transaction = document.apply_update(update, source, is_text=validated.is_text)
        context.structure.commit(update, placed, transaction.deleted)
        for client in validated.clients:
            context.client_owners[client] = actor.principal.id
        raw = update if transaction.update is not None else None
        added, submitted = _complete(context, actor, validated, before)
    if raw is not None and added is not None:
        raw = merge((raw, added))
    written = context.commit(
        PendingCommit(
            actor,
            "sync",
            transaction,
            raw if raw is not None else added,
            UndoKind.TYPING,
            keystroke=Keystroke.of(placed.staged, placed.deletions),
            source=source,
            clients=validated.clients,
            added=added,
            submitted=submitted,
        )
    )
    for block in submitted:
        submission = Submission(context, block, document.text(block), actor)
        written.on_disk.add_done_callback(partial(_notify_submitted, submission))
    return written.on_disk


def _complete(
    context: Context, actor: Actor, validated: ValidatedUpdate, before: Mapping[str, Status | str]
) -> tuple[bytes | None, tuple[str, ...]]:
    """Add to a client's update who it is, and what its drafts must say; they had a status `before`.

    Returns the update with it, and the drafts that are submitted.
    """
    document, drafts = context.document, validated.drafts
    due = [
        block
        for block in validated.submitted
        if block in before or document.header(block).status == Status.DONE
    ]
    if not due and not drafts and document.member(actor.principal.id) is not None:
        return None, ()
    with document.transaction("draft") as completed:
        introduce(document, actor.principal)
        for draft in drafts:
            normalise_draft(document, actor, draft, submitted=draft in due)
        done = tuple(
            block
            for block in due
            if submit_draft(document, block, Status(before.get(block, Status.PENDING)))
        )
    return completed.update, done


def _notify_submitted(submission: Submission, on_disk: asyncio.Future[None]) -> None:
    if on_disk.exception() is None:
        submission.context.submitted.notify(submission)
