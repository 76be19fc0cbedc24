"""Summaries in place of earlier blocks: `context.compact` and `context.expand`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from pydantic import Field

from antiphon_kernel.contexts import Context, order_after, order_before
from antiphon_kernel.conversation import current_layout, layout_of
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.layout import (
    WHOLE_TURNS,
    CompactionError,
    ItemType,
    Layout,
    LayoutItem,
    NewSummary,
    compact,
    visible,
)
from antiphon_kernel.registry import REFERENCES, ContextParams, Result, tool
from antiphon_kernel.tools._common import block_in
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import Permission


class ContextCompactParams(ContextParams):
    """Context, and how much of it models are to go on reading."""

    budget: int | None = Field(default=None, ge=1)
    """Tokens that models may read, estimated: nothing happens until they are exceeded, and then
    about 70 percent are kept. If absent, the last turns are kept."""
    keep_turns: int = Field(default=WHOLE_TURNS, ge=1)
    """How many turns are kept whole if there is no budget."""


class ContextCompactResult(Result):
    """The summary that was written, and the estimate of what models read."""

    context_version: int
    block_id: str | None = None
    """The summary; absent if there was nothing to hide, or no summary shorter than it."""
    name: str | None = None
    path: str | None = None
    """Path that tools take for `block_id`."""
    hidden: int = 0
    """How many blocks models do not read any more."""
    tokens_before: int | None = None
    """Estimate of what models read before."""
    tokens: int | None = None
    """Estimate of what they read now."""


class ContextExpandParams(ContextParams):
    """Context, and the summary that is to be left out."""

    summary: str | None = None
    """Block or path of a summary; the one that models read from if absent."""


class ContextExpandResult(Result):
    """The summary that was left out, and where models read from now."""

    context_version: int
    block_id: str
    """The summary that was left out."""
    name: str
    reads_from: str | None = None
    """Path of the summary that models read from now; absent if they read from the beginning."""


@tool(
    "context.compact",
    needs=Permission.ARRANGE,
    errors=(*REFERENCES[1:], ErrorCode.CONTEXT_TOO_LONG),
)
async def compact_context(call: Call, params: ContextCompactParams) -> ContextCompactResult:
    """Replace the older part of what models read by a summary.

    The summary is a block like any other, an extract that quotes what was said and lists every call
    with the path of its result. Models read from it on; the blocks before stay, and people read,
    search and edit them as before. No call is parted from its results, and what people have said in
    the last turn goes on being read. Undo of the block, or `context.expand`, brings everything
    back.
    """
    context = await call.context(params.context)
    try:
        written = await write_summary(
            call.kernel,
            context,
            call.actor,
            budget=params.budget,
            keep_turns=params.keep_turns,
            check=call.check,
        )
    except CompactionError as error:
        raise AntiphonError(
            ErrorCode.CONTEXT_TOO_LONG,
            f"Context {context.label} cannot be made shorter: {error}. Give a larger budget, or"
            " exclude or shorten what is too long. Nothing was changed.",
            limit=error.budget,
            found=error.tokens,
            path=error.largest,
        ) from error
    if written is None:
        await context.wait_persisted()
        return ContextCompactResult(context_version=context.seq)
    return written


async def write_summary(
    kernel: Kernel,
    context: Context,
    actor: Actor,
    *,
    budget: int | None = None,
    reserved: int = 0,
    keep_turns: int = WHOLE_TURNS,
    live: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> ContextCompactResult | None:
    """Write the summary that `layout.compact` plans; None if there is nothing to win.

    Args:
        check: raises if the actor may not write it any more; called right before.

    Raises:
        CompactionError: if what has to go on being read is larger than the budget.
        AntiphonError: what `Context.write` raises.
    """
    new = await _planned(
        context,
        partial(compact, budget=budget, reserved=reserved, keep_turns=keep_turns, live=live),
    )
    check()
    if new is None:
        return None
    block = str(context.next_block_id(actor.principal.id))
    place = order_before if new.is_before else order_after
    header = BlockHeader(
        id=block,
        kind=BlockKind.TEXT,
        role=Role.SYSTEM,
        status=Status.DONE,
        order="",
        created=iso_time(kernel.clock.now_ms()),
        author=actor.principal.id,
        parent=new.parent,
        collapsed=True,
        metadata=new.record.as_metadata(),
    )

    def write() -> None:
        placed = header._replace(order=place(context.document, new.neighbour))
        context.document.create_block(placed, new.text)

    written = context.write(actor, "compact", write, blocks=())
    path = next(item.path for item in layout_of(context).arranged().items if item.block.id == block)
    await written.saved()
    return ContextCompactResult(
        context_version=written.seq,
        block_id=block,
        name=context.block_name(block),
        path=str(path),
        hidden=new.hidden,
        tokens_before=new.tokens_before,
        tokens=new.tokens,
    )


async def _planned(
    context: Context, plan: Callable[[Layout, Callable[[str], int]], NewSummary | None]
) -> NewSummary | None:
    """Return the summary for the context as it is when this returns.

    A long context takes a while, in which others write: then once more, at last without a break.
    """

    def planned(layout: Layout) -> Callable[[], NewSummary | None]:
        places = {block: place for place, block in enumerate(context.document.block_ids())}
        return partial(plan, layout, places.__getitem__)

    for _ in range(2):
        layout = await current_layout(context)
        new = await asyncio.to_thread(planned(layout))
        if layout_of(context).arranged() is layout:
            return new
    return planned(await current_layout(context))()


@tool("context.expand", needs=Permission.ARRANGE, errors=REFERENCES)
async def expand(call: Call, params: ContextExpandParams) -> ContextExpandResult:
    """Let models read again what a summary stands for: the summary is left out instead.

    A summary before it, if there is one, is read again too. The block stays where it is;
    `block.exclude` with `excluded: false` puts it back.
    """
    context = await call.context(params.context)
    await current_layout(context)
    call.check()
    block = await _summary(call, context, params.summary)
    if not context.document.header(block).excluded:
        await context.set_fields(call.actor, "exclude", block, {"excluded": True}).saved()
    read_from = _read_from(context)
    return ContextExpandResult(
        context_version=context.seq,
        block_id=block,
        name=context.block_name(block),
        reads_from=str(read_from.path) if read_from is not None else None,
    )


def _read_from(context: Context) -> LayoutItem | None:
    return visible(layout_of(context).arranged()).summary


async def _summary(call: Call, context: Context, reference: str | None) -> str:
    if reference is None:
        found = _read_from(context)
        if found is None:
            raise invalid_params(
                f"Models read context {context.label} from the beginning: no summary hides"
                " anything that could be read again.",
                field="context",
            )
        return found.block.id
    block = await block_in(call, context, reference)
    items = layout_of(context).arranged().items
    if not any(item.block.id == block and item.type is ItemType.SUMMARY for item in items):
        raise invalid_params(
            f"Block {quote(reference)} is no summary that context.compact has written: leave"
            " summary out to name the one that models read from.",
            field="summary",
        )
    return block
