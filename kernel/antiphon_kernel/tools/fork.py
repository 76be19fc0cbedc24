"""`context.fork`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from antiphon_kernel.contexts import (
    Context,
    Fork,
    InitialContent,
    read_authors,
    read_version,
    split_surrogates,
    start_fork,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, tool
from antiphon_kernel.storage import ContextRow
from antiphon_kernel.tools.context import ContextInfo, context_info
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.roles import Permission


class BlockRange(Params):
    """Blocks that stand in a row, both ends included."""

    first: str | None = None
    """The block it begins with; the first of the context if absent."""
    last: str | None = None
    """The block it ends with; the last of the context if absent."""


class ContextForkParams(Params):
    """Context, version and blocks to fork."""

    context: str
    """Label or id."""
    label: str | None = None
    """What the fork is called: at most 64 of a-z, 0-9, _ and -; made from the label of the original
    if absent."""
    at: int | None = Field(default=None, ge=1)
    """The version of the context to fork; as it is now if absent."""
    blocks: BlockRange | None = None
    """Only these; all if absent."""


class ContextForkResult(ContextInfo):
    """The new context."""

    context_version: int
    """The version that the fork begins with."""
    source_context: str
    """Id of the original."""
    source_version: int
    """The version of the original that was copied."""
    blocks: int
    """How many blocks were copied."""


@tool("context.fork", needs=Permission.WRITE, errors=REFERENCES)
async def fork_context(call: Call, params: ContextForkParams) -> ContextForkResult:
    """Copy a context into a new one, as it is or as it was at one of its versions.

    A copied block keeps author and number under the id of the new context and names its original
    in `source_block`; block.blame goes on naming who wrote it first. There is nothing to undo in
    a fork. A range may not part a tool call from its result; what answers a block that is left
    out answers the nearest block above it that is copied, or none: what its original in
    `source_block` answers, is told there. What a model was writing is interrupted
    in the copy and goes on in the original.
    """
    context = await call.context(params.context)
    context.appends.flush_all()
    at = context.seq if params.at is None else params.at
    if at > context.seq:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"Context {context.label} has the version {context.seq}, there is none numbered"
            f" {quote(at)}: name one that a call has returned.",
            field="at",
            current_version=context.seq,
        )
    now = context.document
    headers = [now.header(block) for block in now.block_ids()] if at == context.seq else []
    await context.wait_persisted()
    kernel, journal = call.kernel, call.kernel.journal
    document, ops = await read_version(journal, context.row, at, kernel.ids.client_id(), headers)
    try:
        blocks = await _chosen(call, params.blocks or BlockRange(), context, document)
        numbers = {block: context.number(block) for block in blocks}
        authors = await read_authors(journal, context.row, document, ops, numbers)
        fork = Fork(context.id, document, tuple(blocks), authors)

        async def copies(row: ContextRow) -> InitialContent:
            time, client = kernel.clock.now_ms(), kernel.ids.client_id()
            return await start_fork(row, fork, call.actor, time, client, kernel.limits)

        label = params.label
        if label is None:
            label = kernel.contexts.free_label(f"{context.label}-fork")
        made = await kernel.create_context(label, copies)
    finally:
        document.close()
    await made.wait_persisted()
    return ContextForkResult(
        **context_info(call, made.row).model_dump(),
        context_version=made.seq,
        source_context=context.id,
        source_version=at,
        blocks=len(blocks),
    )


async def _chosen(
    call: Call, wanted: BlockRange, context: Context, document: Document
) -> list[str]:
    """The blocks of a range, in document order."""
    everything = list(document.block_ids())
    start, end = 0, len(everything)
    if wanted.first is not None:
        start = await _place(call, wanted.first, context, document)
    if wanted.last is not None:
        end = await _place(call, wanted.last, context, document) + 1
    if start > end or (wanted.first is not None and start == end):
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The range of blocks ends before it begins: {wanted.first} stands behind"
            f" {wanted.last}.",
            field="blocks",
        )
    chosen = everything[start:end]
    if torn := split_surrogates(document, chosen):
        first, last = _whole(document, everything, start, end)
        call_block, result = torn[0]
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The range of blocks parts the call {call_block} from its result {result}:"
            f" take {first} to {last}, or less.",
            field="blocks",
            call=call_block,
            result=result,
            first=first,
            last=last,
        )
    return chosen


def _whole(document: Document, everything: Sequence[str], start: int, end: int) -> tuple[str, str]:
    """The ends of the smallest range around this one that parts no call from its result."""
    while torn := split_surrogates(document, everything[start:end]):
        places = [document.order.index(block) for pair in torn for block in pair]
        start, end = min(start, *places), max(end, max(places) + 1)
    return everything[start], everything[end - 1]


async def _place(call: Call, reference: str, context: Context, document: Document) -> int:
    other, block = await call.block(reference)
    if other is not context or block not in document:
        raise AntiphonError(
            ErrorCode.BLOCK_NOT_FOUND,
            f"There is no block {quote(reference)} in that version of context {context.label}.",
            reference=truncate(reference),
        )
    return document.order.index(block)
