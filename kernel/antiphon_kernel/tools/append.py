"""`block.append`."""

from __future__ import annotations

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.tools._common import (
    WRITING,
    WriteResult,
    check_writable,
    wait_persisted,
)
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.json_validation import has_whole_characters
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import reject_long_text


class AppendParams(Params):
    """Text for the end of a block."""

    block_id: str
    text: str
    """Text to write."""
    section: str | None = None
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
    section = params.section
    if params.stream:
        context, block, unflushed = await append_streamed(
            call, params.block_id, params.text, section
        )
        return AppendResult(
            version=context.blocks.version(block), context_version=context.seq, unflushed=unflushed
        )
    context, block = await _find_open_block(call, params.block_id, section)
    context.appends.flush(block)
    reject_long_text(context.limits, context.document.length(block, section) + len(params.text))
    written = context.append(call.actor, block, params.text, section)
    result = await wait_persisted(context, block, written)
    return AppendResult(version=result.version, context_version=result.context_version)


async def append_streamed(
    call: Call, reference: str, text: str, section: str | None = None
) -> tuple[Context, str, int]:
    """Buffer text for the end of a block that is not done yet.

    Writers in this process stream by it, without a request to encode, validate and answer.

    Returns the context, the block and how many code points are not flushed yet.

    Raises:
        AntiphonError: whatever block.append can fail with.
    """
    if not has_whole_characters(text):
        message = "The text has half a surrogate pair: append whole characters."
        raise invalid_params(message, field="text")
    context, block = await _find_open_block(call, reference, section)
    appends = context.appends
    waiting = appends.unflushed(block, section) + len(text)
    reject_long_text(context.limits, context.document.length(block, section) + waiting)
    unflushed = appends.add(call.actor, block, text, section)
    if unflushed and not context.document.tail_is_live(block, section):
        # The end is known now; its history may be let go of before the timer comes.
        appends.flush(block)
        unflushed = 0
    return context, block, unflushed


async def _find_open_block(call: Call, reference: str, section: str | None) -> tuple[Context, str]:
    """Find a block into whose text the caller may write at the end."""
    context, block = await call.kernel.find_block(reference)
    await context.prepare_append(block, section)
    call.check()
    check_writable(context.document, call.actor, block, section)
    header = context.document.header(block)
    if header.status in (Status.DONE, Status.ERROR):
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Block {reference} is {header.status}, so nothing can be appended;"
            " block.edit and block.splice still change its text.",
            status=str(header.status),
        )
    if header.is_written_by_program:
        call.kernel.writers.writes(call.actor, block)
    return context, block
