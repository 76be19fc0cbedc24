"""Rules for header fields that the kernel itself writes in response to others' writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from antiphon_kernel.contexts.ordering import order_at_end
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import DriftRow
from antiphon_kernel.text.fractional_index import is_order_key
from antiphon_kernel.types.block_metadata import CUT_OUT, DRIFT, EXCLUDED_BEFORE
from antiphon_kernel.types.enums import BlockKind, DriftKind, DriftState, Status
from antiphon_kernel.types.records import Actor


def follow_change(
    document: Document, change: DocumentChange, submitted: Collection[str] = ()
) -> bytes | None:
    """The first write makes a pending block running; a later one marks a finished block edited.

    A call is pending until it runs: its arguments are written before. What the change itself has
    finished (`submitted`) is left alone. Returns the update that says so; None if there is none.
    """
    due: dict[str, dict[str, object]] = {}
    written = [text.block for text in change.texts]
    written += [content.block for content in change.contents]
    for block in dict.fromkeys(written):
        header = document.header(block)
        if block in submitted:
            continue
        if header.status == Status.PENDING:
            if header.kind != BlockKind.TOOL_CALL:
                due[block] = {"status": Status.RUNNING}
        elif header.status in (Status.DONE, Status.ERROR) and not header.edited_after_done:
            due[block] = {"edited_after_done": True}
    for block in change.added:
        header = document.header(block)
        if header.status == Status.PENDING and header.is_draft and document.text(block):
            due[block] = {"status": Status.RUNNING}
    if not due:
        return None
    with document.transaction("kernel") as transaction:
        for block, fields in due.items():
            document.set_fields(block, **fields)
    return transaction.update


def hide_blocks(document: Document, blocks: Iterable[str], drift: DriftRow) -> None:
    """Hide the blocks that a drift brought and of which nothing is left, or show them again.

    A file that came with it goes with its message, and a summary is whoever's asked for it.
    """
    hides, is_summary = drift.state is DriftState.UNDONE, drift.kind is DriftKind.DISTILL
    for block in blocks:
        header = document.header(block)
        is_part = block == drift.block or header.metadata.get(DRIFT) == drift.id
        if is_part and (not hides or is_summary or not document.text(block)):
            metadata = {**header.metadata, CUT_OUT: True}
            if hides:
                metadata[EXCLUDED_BEFORE] = header.excluded
            else:
                del metadata[CUT_OUT]
            excluded = hides or metadata.pop(EXCLUDED_BEFORE, header.excluded)
            document.set_fields(block, excluded=excluded, metadata=metadata)


def normalise_draft(document: Document, actor: Actor, draft: str, *, submitted: bool) -> None:
    """A client chose the header of its draft; what follows from who it is, the kernel says.

    Only one that is `submitted` may be done already.
    """
    header = document.header(draft)
    fields: dict[str, object] = {}
    if header.kind != BlockKind.TEXT:
        fields["kind"] = BlockKind.TEXT
    if not submitted and header.status not in (Status.PENDING, Status.RUNNING):
        fields["status"] = Status.PENDING
    if header.author != actor.principal.id:
        fields["author"] = actor.principal.id
    end = order_at_end(document, without=draft)
    if not is_order_key(header.order) or header.order > end:
        fields["order"] = end
    if fields:
        document.set_fields(draft, **fields)


def submit_draft(document: Document, draft: str, before: Status) -> bool:
    """A client has called its draft done: then it stands at the end, unless there is nothing in it.

    An empty one, or one that has ended meanwhile, gets back the status that it had `before`.
    Returns whether it is submitted.
    """
    header = document.header(draft)
    has_ended = before in (Status.DONE, Status.ERROR)
    if has_ended or not document.text(draft).strip():
        if header.status != before:
            document.set_fields(draft, status=before)
        return False
    fields: dict[str, object] = {}
    if header.status != Status.DONE:
        fields["status"] = Status.DONE  # the kernel wrote another one at the same time
    if document.block_ids()[-1] != draft:
        fields["order"] = order_at_end(document)
    if fields:
        document.set_fields(draft, **fields)
    return True
