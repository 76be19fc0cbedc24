"""`block.status`."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.access import check_status
from antiphon_kernel.contexts import Submission, order_at_end
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema_validation import EXACT_INTEGER
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, tool
from antiphon_kernel.tools.writing import WriteResult
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_value


class StatusParams(Params):
    """The status a block takes on, and how it came to it."""

    block_id: str
    status: Status
    exit_code: int | None = Field(default=None, ge=-EXACT_INTEGER, le=EXACT_INTEGER)
    is_error: bool | None = None
    truncated: bool | None = None
    stop_reason: str | None = None
    stopped_by: str | None = None
    """Username of whoever interrupted it."""


@tool(
    "block.status",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.INVALID_TRANSITION,
        ErrorCode.TOO_LARGE,
    ),
)
async def status(call: Call, params: StatusParams) -> WriteResult:
    """Move a block on: pending, running, done or error, never back.

    A person's draft that becomes done is submitted: it moves to the end of the context. Only the
    author of a block or the owner of the kernel may do this; of a draft only its author.
    """
    context, block = await call.block(params.block_id)
    header = context.document.header(block)
    check_status(header, call.actor.principal, call.role)
    _check_transition(params, header)
    submits = header.is_draft and params.status is Status.DONE
    said = render(context.document, block) if submits else ""
    if submits and not said.strip():
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Block {params.block_id} is an empty draft, and an empty draft cannot be submitted:"
            " write something first.",
            status=str(header.status),
        )
    fields = _changed_fields(params, header)
    for name, value in fields.items():
        check_value(name, value, context.limits)

    def write() -> None:
        if submits and context.document.block_ids()[-1] != block:
            fields["order"] = order_at_end(context.document)
        context.document.set_fields(block, **fields)

    if fields:
        written = context.write(call.actor, "status", write, blocks=[block], undo=None)
        await written.saved()
    else:
        await context.wait_persisted()
    if submits:
        call.kernel.submissions.notify(Submission(context, block, said, call.actor))
    return WriteResult(version=context.version(block), context_version=context.seq)


def _check_transition(params: StatusParams, header: BlockHeader) -> None:
    now = header.status
    if isinstance(now, Status) and now.may_become(params.status):
        return
    allowed = [one.value for one in Status if isinstance(now, Status) and now.may_become(one)]
    raise AntiphonError(
        ErrorCode.INVALID_TRANSITION,
        f"Block {params.block_id} is {now} and cannot become {params.status};"
        f" allowed: {', '.join(allowed) or 'nothing'}.",
        status=str(now),
        allowed=allowed,
    )


def _changed_fields(params: StatusParams, header: BlockHeader) -> dict[str, object]:
    wanted = {
        "status": params.status,
        "exit_code": params.exit_code,
        "is_error": params.is_error,
        "truncated": params.truncated,
        "stop_reason": params.stop_reason,
        "stopped_by": params.stopped_by,
    }
    return {
        name: value
        for name, value in wanted.items()
        if value is not None and value != getattr(header, name)
    }
