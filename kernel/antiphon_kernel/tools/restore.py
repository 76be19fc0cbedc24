"""`block.restore`."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, tool
from antiphon_kernel.tools.text_access import check_writable
from antiphon_kernel.tools.version_map import check_version
from antiphon_kernel.tools.writing import WriteResult, wait_persisted
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission


class RestoreParams(Params):
    """Block and version to restore."""

    block_id: str
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""
    version: int = Field(ge=1)
    """The version whose text the block gets back."""


@tool(
    "block.restore",
    needs=Permission.WRITE,
    errors=(*REFERENCES, ErrorCode.READ_ONLY_FIELD, ErrorCode.READ_ONLY_SECTION),
)
async def restore(call: Call, params: RestoreParams) -> WriteResult:
    """Give a block the text that it had at an earlier version.

    It is an edit like any other: what is the same in both texts is left alone, and it can be
    undone.
    """
    context, block = await call.block(params.block_id)
    check_writable(context.document, call.actor, block, params.section)
    check_version(context, block, params.version)
    history = await call.history(context, block)
    context.appends.flush(block)
    written = context.restore(
        call.actor, block, history.plan_restore(params.section, params.version)
    )
    return await wait_persisted(context, block, written)
