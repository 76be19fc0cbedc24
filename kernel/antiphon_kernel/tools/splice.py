"""`block.splice`."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.tools.sizes import check_size
from antiphon_kernel.tools.text_access import check_writable
from antiphon_kernel.tools.version_map import map_splice, map_to_current
from antiphon_kernel.tools.writing import WRITING, WriteResult, wait_persisted
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import Permission


class SpliceParams(Params):
    """A change by position. Offsets count code points."""

    block_id: str
    offset: int = Field(ge=0)
    """Code points before the place."""
    delete_count: int = Field(default=0, ge=0)
    """Code points that go."""
    insert: str = ""
    """Text that comes in their place."""
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""
    base_version: int | None = None
    """The version of the block that `offset` refers to; now if absent."""


@tool(
    "block.splice",
    needs=Permission.WRITE,
    errors=(*WRITING, ErrorCode.STALE_VERSION),
)
async def splice(call: Call, params: SpliceParams) -> WriteResult:
    """Replace code points of a block by position; meant for programs, models use block.edit.

    With `base_version` the offset is one of the text that the caller read: what others have
    inserted there since stays before the insertion, and what is deleted must be untouched.
    """
    context, block = await call.block(params.block_id)
    section = params.section
    check_writable(context.document, call.actor, block, section)
    carried = await map_to_current(call, context, block, section, params.base_version)
    now = context.document.text(block, section)
    length = len(carried.before) if carried is not None else len(now)
    end = params.offset + params.delete_count
    if end > length:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The range {quote(params.offset)} to {quote(end)} is outside the text, which has"
            f" {length} code points: read the block again.",
            field="offset",
            length=length,
            version=context.version(block),
        )
    offset = params.offset
    if carried is not None:
        offset = map_splice(carried, offset, params.delete_count, context.version(block))
        length = len(carried.now)
    check_size(context, length - params.delete_count + len(params.insert))

    def write() -> None:
        if now[offset : offset + params.delete_count] != params.insert:
            context.document.splice(block, offset, params.delete_count, params.insert, section)

    written = context.write(call.actor, "splice", write, blocks=[block])
    return await wait_persisted(context, block, written)
