"""`block.append`."""

from __future__ import annotations

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.tools.sizes import check_size
from antiphon_kernel.tools.text_access import check_writable
from antiphon_kernel.tools.writing import WRITING, WriteResult, wait_persisted
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import Permission


class AppendParams(Params):
    """Text for the end of a block."""

    block_id: str
    text: str
    """What to write."""
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""
    stream: bool = False
    """Answer at once and batch: only what has been flushed is acknowledged."""


class AppendResult(WriteResult):
    """State of the append."""

    unflushed: int | None = None
    """Code points that are buffered and not on disk yet; only when streaming."""


@tool(
    "block.append",
    needs=Permission.WRITE,
    errors=(
        *WRITING,
        ErrorCode.INVALID_TRANSITION,
    ),
)
async def append(call: Call, params: AppendParams) -> AppendResult:
    """Write at the end of a block that is not done yet."""
    context, block = await call.kernel.find_block(params.block_id)
    section = params.section
    await context.prepare_append(block, section)
    call.check()
    check_writable(context.document, call.actor, block, section)
    header = context.document.header(block)
    if header.status in (Status.DONE, Status.ERROR):
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Block {params.block_id} is {header.status}, so nothing can be appended;"
            " block.edit and block.splice still change its text.",
            status=str(header.status),
        )
    if header.role in (Role.MODEL, Role.TOOL):
        call.kernel.writers.writes(call.actor, block)
    appends = context.appends
    if params.stream:
        waiting = appends.unflushed(block, section) + len(params.text)
        check_size(context, context.document.length(block, section) + waiting)
        unflushed = appends.add(call.actor, block, params.text, section)
        if unflushed and not context.document.tail_is_live(block, section):
            # The end is known now; its history may be let go of before the timer comes.
            appends.flush(block)
            unflushed = 0
        return AppendResult(
            version=context.version(block), context_version=context.seq, unflushed=unflushed
        )
    appends.flush(block)
    check_size(context, context.document.length(block, section) + len(params.text))
    written = context.append(call.actor, block, params.text, section)
    result = await wait_persisted(context, block, written)
    return AppendResult(version=result.version, context_version=result.context_version)
