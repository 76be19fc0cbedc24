"""`block.push_item`, `block.insert_item`, `block.delete_item` and `block.append_log`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content_writes import (
    Write,
    plan_append,
    plan_delete,
    plan_insert,
    plan_push,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.tools.content_writing import (
    WRITING_CONTENT,
    path_to,
    write_content,
)
from antiphon_kernel.tools.sizes import check_value_size
from antiphon_kernel.tools.writing import WriteResult
from antiphon_kernel.types.roles import Permission


class PushItemParams(Params):
    """A list, and what comes to its end."""

    block_id: str
    value: Any
    """The item, any JSON that the list takes."""
    section: str | None = None
    """Path of the section; the block itself if absent."""
    field: str | None = None
    """Name of the field, where the list is one of a map."""


@tool("block.push_item", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def push_item(call: Call, params: PushItemParams) -> WriteResult:
    """Put an item at the end of a list."""

    def plan(context: Context, block: str) -> list[Write]:
        check_value_size(context, params.value)
        path = path_to(params.section, params.field)
        return [plan_push(context.document, block, path, params.value)]

    return await write_content(call, params.block_id, "push_item", plan)


class InsertItemParams(PushItemParams):
    """A list, and what comes into it where."""

    index: int = Field(ge=0)
    """The item it comes before, counted from 0; the number of items puts it at the end."""


@tool("block.insert_item", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def insert_item(call: Call, params: InsertItemParams) -> WriteResult:
    """Put an item before another one of a list."""

    def plan(context: Context, block: str) -> list[Write]:
        check_value_size(context, params.value)
        path = path_to(params.section, params.field)
        return [plan_insert(context.document, block, path, params.index, params.value)]

    return await write_content(call, params.block_id, "insert_item", plan)


class DeleteItemParams(Params):
    """A list, and which of its items goes."""

    block_id: str
    index: int = Field(ge=0)
    """The item, counted from 0."""
    section: str | None = None
    """Path of the section; the block itself if absent."""
    field: str | None = None
    """Name of the field, where the list is one of a map."""


@tool("block.delete_item", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def delete_item(call: Call, params: DeleteItemParams) -> WriteResult:
    """Take an item out of a list."""

    def plan(context: Context, block: str) -> list[Write]:
        path = path_to(params.section, params.field)
        return [plan_delete(context.document, block, path, params.index)]

    return await write_content(call, params.block_id, "delete_item", plan)


class AppendLogParams(Params):
    """A log, and its next entry."""

    block_id: str
    entry: Any
    """Any JSON."""
    section: str | None = None
    """Path of the section; the block itself if absent."""


@tool("block.append_log", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def append_log(call: Call, params: AppendLogParams) -> WriteResult:
    """Add an entry to a log. Entries stay; rendering shows the last ones."""

    def plan(context: Context, block: str) -> list[Write]:
        check_value_size(context, params.entry)
        return [plan_append(context.document, block, params.section, params.entry)]

    return await write_content(call, params.block_id, "append_log", plan)
