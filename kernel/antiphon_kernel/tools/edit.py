"""`block.edit`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.text.edits import Delete, EditOperation, Insert, Replace, plan_edit
from antiphon_kernel.tools.sizes import check_size
from antiphon_kernel.tools.text_access import check_writable
from antiphon_kernel.tools.version_map import map_operations, map_to_current
from antiphon_kernel.tools.writing import WRITING, WriteResult, wait_persisted
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class InsertOperation(Params):
    """Whole lines above line `line`; the number of lines puts them at the end."""

    op: Literal["insert"]
    """What to do."""
    line: int
    """The line that comes after them."""
    content: str
    """Whole lines: `"a"` and `"a\\n"` are one line, `"\\n"` is an empty one, `""` is none."""


class DeleteOperation(Params):
    """The lines from `start_line` to `end_line` (exclusive) go away."""

    op: Literal["delete"]
    """What to do."""
    start_line: int
    """First line that goes."""
    end_line: int
    """Line after the last one."""
    expected_text: str | None = None


class ReplaceOperation(Params):
    """Whole lines in the place of the lines from `start_line` to `end_line` (exclusive)."""

    op: Literal["replace"]
    """What to do."""
    start_line: int
    """First line that goes."""
    end_line: int
    """Line after the last one; `start_line` itself inserts."""
    content: str
    """Whole lines, as in an insert."""
    expected_text: str | None = None


Operation = Annotated[
    InsertOperation | DeleteOperation | ReplaceOperation, Field(discriminator="op")
]


class EditParams(Params):
    """A batch of line operations; all line numbers refer to the text before the batch."""

    block_id: str
    operations: list[Operation]
    """All of them happen, or none."""
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""
    base_version: int | None = None
    """The version of the block that line numbers and `expected_text` refer to; now if absent."""


@tool(
    "block.edit",
    needs=Permission.WRITE,
    errors=(
        *WRITING,
        ErrorCode.LINE_OUT_OF_RANGE,
        ErrorCode.CONTENT_MISMATCH,
        ErrorCode.STALE_VERSION,
        ErrorCode.OVERLAPPING_OPERATIONS,
    ),
)
async def edit(call: Call, params: EditParams) -> WriteResult:
    """Change lines of a block, all or nothing.

    Lines count from 0, ends are exclusive. With `expected_text` an operation fails unless the
    lines are what the caller believes them to be. With `base_version` it finds the lines that the
    caller read, wherever they are by now, or fails with the lines that stand there instead.
    """
    context, block = await call.block(params.block_id)
    section = params.section
    check_writable(context.document, call.actor, block, section)
    count, limit = len(params.operations), context.limits.operations_per_edit
    check_limit(count, limit, f"An edit has {count} operations", "send several")
    operations = [_operation(one) for one in params.operations]
    carried = await map_to_current(call, context, block, section, params.base_version)
    if carried is not None:
        operations = map_operations(carried, operations, context.version(block))
    text = context.document.text(block, section)
    splices = plan_edit(text, operations)
    grown = sum(len(one.inserted) - one.deleted for one in splices)
    check_size(context, len(text) + grown)

    written = context.write(
        call.actor,
        "edit",
        lambda: context.document.splice_all(block, splices, section),
        blocks=[block],
    )
    return await wait_persisted(context, block, written)


def _operation(one: InsertOperation | DeleteOperation | ReplaceOperation) -> EditOperation:
    match one:
        case InsertOperation():
            return Insert(one.line, one.content)
        case DeleteOperation():
            return Delete(one.start_line, one.end_line, one.expected_text)
        case ReplaceOperation():
            return Replace(one.start_line, one.end_line, one.content, one.expected_text)
