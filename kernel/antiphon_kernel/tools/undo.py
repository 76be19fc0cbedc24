"""`block.undo` and `block.redo`."""

from __future__ import annotations

from antiphon_kernel.access import check_undo_of
from antiphon_kernel.contexts import Context
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.document.history.update_builder import UpdatePlan
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import UndoRow
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import reject_read_only


class UndoParams(Params):
    """Last edit: author and scope."""

    block_id: str | None = None
    """Only edits of this block; of the whole context if absent."""
    context: str | None = None
    principal: str | None = None
    """Username or id; oneself if absent."""


class UndoResult(Result):
    """Blocks changed back."""

    undone: list[str]
    """The blocks whose text changed."""
    versions: dict[str, int]
    """The new version of each of them."""
    context_version: int


@tool(
    "block.undo",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.NOTHING_TO_UNDO,
        ErrorCode.READ_ONLY_FIELD,
        ErrorCode.READ_ONLY_SECTION,
    ),
)
async def undo(call: Call, params: UndoParams) -> UndoResult:
    """Take back the last edit of one principal, never what somebody else wrote into it."""
    return await _apply(call, params, UndoDirection.UNDO)


@tool(
    "block.redo",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.NOTHING_TO_REDO,
        ErrorCode.READ_ONLY_FIELD,
        ErrorCode.READ_ONLY_SECTION,
    ),
)
async def redo(call: Call, params: UndoParams) -> UndoResult:
    """Do again what was undone last."""
    return await _apply(call, params, UndoDirection.REDO)


async def _apply(call: Call, params: UndoParams, turn: UndoDirection) -> UndoResult:
    context, block = await _where(call, params)
    whose = _whose(call, params)
    found = await _undoable(call, context, whose.id, turn, block)
    call.check()
    _whose(call, params)
    if found is None:
        code = (
            ErrorCode.NOTHING_TO_UNDO if turn is UndoDirection.UNDO else ErrorCode.NOTHING_TO_REDO
        )
        where = f"block {params.block_id}" if block is not None else f"context {context.label}"
        raise AntiphonError(
            code,
            f"There is nothing of {whose.username} to {turn} in {where}.",
            username=whose.username,
        )
    written = context.apply_undo(call.actor, *found)
    await written.saved()
    return UndoResult(
        undone=list(written.versions),
        versions=dict(written.versions),
        context_version=written.seq,
    )


async def _undoable(
    call: Call, context: Context, principal: str, turn: UndoDirection, block: str | None
) -> tuple[UndoRow, dict[str, UpdatePlan]] | None:
    """The last unit whose turning changes something (in `block`), and what it changes where.

    What it returns holds until the next await. A unit that would change nothing, because others
    have removed all that it wrote, keeps its place: they may undo that.

    Raises:
        AntiphonError: read_only_field or read_only_section if the caller must not change that.
    """
    passed: set[int] = set()
    while True:
        unread: tuple[str, ...] = ()
        for row in context.undo.rows(principal, turn, block):
            if row.unit in passed:
                continue
            histories = context.histories.opened(row.blocks)
            if histories is None:
                unread = row.blocks
                break
            client = context.document.client_id
            plans = {one.block: one.plan_undo(row.unit, turn, client) for one in histories}
            if plans[block] if block is not None else any(plans.values()):
                for one in histories:
                    schema = context.document.schema(one.block)
                    for names in one.changed_blocks(row.unit, turn):
                        reject_read_only(call.actor, one.block, schema, names)
                return row, {one: plan for one, plan in plans.items() if plan}
            passed.add(row.unit)
        if not unread:
            return None
        await context.histories.open(unread)


async def _where(call: Call, params: UndoParams) -> tuple[Context, str | None]:
    if params.block_id is None:
        context = await call.context(params.context)
        context.appends.flush_all()
        return context, None
    return await call.block(params.block_id)


def _whose(call: Call, params: UndoParams) -> Principal:
    """The principal whose edit is meant, if the caller may touch it."""
    caller = call.actor.principal
    if params.principal is None:
        return caller
    whose = call.kernel.find_principal(params.principal)
    check_undo_of(whose, caller, call.role)
    return whose
