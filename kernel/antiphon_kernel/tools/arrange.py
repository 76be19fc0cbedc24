"""`block.move`, `block.collapse` and `block.exclude`: what an editor may do to anyone's block."""

from __future__ import annotations

from collections.abc import Callable

from antiphon_kernel.access import check_arrange
from antiphon_kernel.contexts import Context, order_after, order_before
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, tool
from antiphon_kernel.tools.same_context import block_in
from antiphon_kernel.tools.writing import WriteResult, wait_persisted
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import Permission


class MoveParams(Params):
    """Block to move, and its new neighbour in its context: either `after` or `before`."""

    block_id: str
    after: str | None = None
    """The block it comes to stand right after."""
    before: str | None = None
    """The block it comes to stand right before."""


class CollapseParams(Params):
    """Block, and whether it is shown folded."""

    block_id: str
    collapsed: bool = True
    """Whether only its head is shown; true if absent."""


class ExcludeParams(Params):
    """Block, and whether models read it."""

    block_id: str
    excluded: bool = True
    """Whether it is left out of what models are given; true if absent."""


@tool("block.move", needs=Permission.WRITE, errors=REFERENCES)
async def move(call: Call, params: MoveParams) -> WriteResult:
    """Put a block right after or right before another one of the same context.

    The parent stays what it is. A block that already stands there is not changed.
    """
    if (params.after is None) == (params.before is None):
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            "block.move takes either after or before, found"
            f" {'neither' if params.after is None else 'both'}: name one neighbour.",
            field="after",
        )
    context, block = await call.block(params.block_id)
    reference = params.after or params.before or ""
    beside = await block_in(call, context, reference)
    if beside == block:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"Block {params.block_id} cannot stand next to itself: name another one.",
            field="after" if params.after is not None else "before",
        )
    document, after = context.document, params.after is not None
    place, there = document.order.index(block), document.order.index(beside)

    def write() -> None:
        order = order_after if after else order_before
        document.set_fields(block, order=order(document, beside, without=block))

    stands = place == (there + 1 if after else there - 1)
    return await _arrange(call, context, block, "move", None if stands else write)


@tool("block.collapse", needs=Permission.WRITE, errors=REFERENCES)
async def collapse(call: Call, params: CollapseParams) -> WriteResult:
    """Fold a block for everybody, or unfold it."""
    context, block = await call.block(params.block_id)
    return await _set_flag(call, context, block, "collapsed", params.collapsed)


@tool("block.exclude", needs=Permission.WRITE, errors=REFERENCES)
async def exclude(call: Call, params: ExcludeParams) -> WriteResult:
    """Leave a block out of what models are given, or let them read it again."""
    context, block = await call.block(params.block_id)
    return await _set_flag(call, context, block, "excluded", params.excluded)


async def _set_flag(
    call: Call, context: Context, block: str, flag: str, value: bool
) -> WriteResult:
    def write() -> None:
        context.document.set_fields(block, **{flag: value})

    same = getattr(context.document.header(block), flag) is value
    operation = "collapse" if flag == "collapsed" else "exclude"
    return await _arrange(call, context, block, operation, None if same else write)


async def _arrange(
    call: Call, context: Context, block: str, operation: str, write: Callable[[], None] | None
) -> WriteResult:
    """Commit, unless there is nothing to change; permission comes first in either case."""
    check_arrange(context.document.header(block), call.actor.principal, call.role)
    if write is None:
        await context.wait_persisted()
        return WriteResult(version=context.version(block), context_version=context.seq)
    written = context.write(call.actor, operation, write, blocks=[block], undo=None)
    return await wait_persisted(context, block, written)
