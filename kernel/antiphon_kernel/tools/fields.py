"""`block.set_field` and `block.increment`."""

from __future__ import annotations

from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content_writes import Write, plan_increment, plan_set
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.tools.content_writing import (
    WRITING_CONTENT,
    path_to,
    write_content,
)
from antiphon_kernel.tools.sizes import check_content_size, check_value_size
from antiphon_kernel.tools.writing import WriteResult
from antiphon_kernel.types.roles import Permission


class SetFieldParams(Params):
    """A field of a map, and its new value."""

    block_id: str
    field: str
    """Name of the field."""
    value: Any
    """What its type asks for; null takes the value away."""
    section: str | None = None
    """Path of the section that the field is in; the block itself if absent."""


@tool("block.set_field", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def set_field(call: Call, params: SetFieldParams) -> WriteResult:
    """Give a field of a map a value.

    Of a text or a list only what differs is changed, so that whoever writes in it at the same time
    loses nothing. A counter goes on by the difference.
    """

    def plan(context: Context, block: str) -> list[Write]:
        if isinstance(params.value, str | list):
            check_content_size(context, params.value)
        else:
            check_value_size(context, params.value)
        path = path_to(params.section, params.field)
        return plan_set(context.document, block, path, params.value)

    return await write_content(call, params.block_id, "set_field", plan)


class IncrementParams(Params):
    """A counter, and by how much it goes on."""

    block_id: str
    field: str
    """Name of the counter."""
    by: int | float = 1
    """Less than 0 to count down."""
    section: str | None = None
    """Path of the section that the counter is in; the block itself if absent."""


class IncrementResult(WriteResult):
    """New value of the counter."""

    value: int | float
    """The sum of all increments up to this one."""


@tool("block.increment", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def increment(call: Call, params: IncrementParams) -> IncrementResult:
    """Count on. Increments that happen at the same time all count.

    Integers are exact at any length; decimals add up as they are written (0.1 and 0.2 are 0.3).
    """
    value: int | float = 0

    def plan(context: Context, block: str) -> list[Write]:
        nonlocal value
        path = path_to(params.section, params.field)
        planned = plan_increment(context.document, block, path, params.by)
        value = planned.value or 0
        return [planned]

    result = await write_content(call, params.block_id, "increment", plan)
    return IncrementResult(**result.model_dump(), value=value)
