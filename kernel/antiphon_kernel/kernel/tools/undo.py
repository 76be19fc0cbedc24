"""`block.undo` and `block.redo`."""

from __future__ import annotations

from antiphon_kernel.kernel.context import Context
from antiphon_kernel.kernel.kernel import Call
from antiphon_kernel.kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.kernel.undo_stack import Stack
from antiphon_kernel.types.access import Right
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Principal


class UndoParams(Params):
    """Whose last edit, and where."""

    block_id: str | None = None
    """Only edits of this block; of the whole context if absent."""
    context: str | None = None
    principal: str | None = None
    """Username or id; oneself if absent."""


class UndoResult(Result):
    """What has changed back."""

    undone: list[str]
    """The blocks whose text changed."""
    versions: dict[str, int]
    context_version: int


@tool(
    "block.undo",
    needs=Right.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.NOTHING_TO_UNDO,
    ),
)
async def undo(call: Call, params: UndoParams) -> UndoResult:
    """Take back the last edit of one principal, never what somebody else wrote into it."""
    return await _turn(call, params, Stack.UNDO)


@tool(
    "block.redo",
    needs=Right.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.NOTHING_TO_REDO,
    ),
)
async def redo(call: Call, params: UndoParams) -> UndoResult:
    """Do again what was undone last."""
    return await _turn(call, params, Stack.REDO)


async def _turn(call: Call, params: UndoParams, stack: Stack) -> UndoResult:
    context, block = await _where(call, params)
    whose = _whose(call, params)
    while (row := context.undo.top(whose.id, stack, block)) is not None:
        written = context.revert(call.actor, row)
        await written.saved()
        if written.versions:
            return UndoResult(
                undone=list(written.versions),
                versions=dict(written.versions),
                context_version=written.seq,
            )
    code = ErrorCode.NOTHING_TO_UNDO if stack is Stack.UNDO else ErrorCode.NOTHING_TO_REDO
    where = f"block {params.block_id}" if block is not None else f"context {context.label}"
    raise AntiphonError(
        code,
        f"There is nothing of {whose.username} to {stack} in {where}.",
        username=whose.username,
    )


async def _where(call: Call, params: UndoParams) -> tuple[Context, str | None]:
    if params.block_id is None:
        context = await call.context(params.context)
        call.kernel.appends(context).flush_all()
        return context, None
    return await call.block(params.block_id)


def _whose(call: Call, params: UndoParams) -> Principal:
    """The principal whose edit is meant, if the caller may touch it."""
    caller = call.actor.principal
    if params.principal is None:
        return caller
    whose = call.kernel.find_principal(params.principal)
    may = whose == caller or whose.kind is not PrincipalKind.HUMAN or caller == call.kernel.owner
    if not may:
        raise AntiphonError(
            ErrorCode.PERMISSION_DENIED,
            f"Only the owner of the kernel undoes edits of {whose.username}; you are"
            f" {caller.username}.",
            username=caller.username,
        )
    return whose
