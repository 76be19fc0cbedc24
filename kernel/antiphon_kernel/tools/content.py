"""Contents with a schema: reading, rendering, fields, items, logs, export and import."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import ConfigDict, Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content import part_of, read_content, read_value
from antiphon_kernel.document.content_writes import (
    Write,
    plan_append,
    plan_delete,
    plan_increment,
    plan_insert,
    plan_set,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import content_at
from antiphon_kernel.document.rendering import render as rendered
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    ListSchema,
    MapSchema,
    Violation,
    encode_schema,
    fill_items,
    inner_parts,
    joined,
    names_of,
    part_at,
    read_only_part,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, BlockParams, tool
from antiphon_kernel.tools._common import (
    WRITING,
    BlockResult,
    WriteResult,
    check_content_size,
    check_value_size,
    check_version,
    write,
)
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.frozen_json import canonical_json
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit, reject_read_only

_READING: Final = (*REFERENCES, ErrorCode.SCHEMA_VIOLATION)
"""Errors of a tool that reads content."""

_WRITING_CONTENT: Final = (*WRITING, ErrorCode.SCHEMA_VIOLATION)
"""Errors of a tool that writes content."""


_NOTHING: Final = object()


async def _write_content(
    call: Call,
    reference: str,
    operation: str,
    path: str | None,
    plan: Callable[[Context, str], Sequence[Write]],
    *,
    sets: Any = _NOTHING,
) -> WriteResult:
    """Plan writes into the block that a request names; carry them out, all or nothing.

    Args:
        path: the part that is written.
        sets: what it is set to, if it is set as a whole.

    Raises:
        AntiphonError: what finding the block and `plan` raise; read_only_field, read_only_section,
            storage_failed.
    """
    context, block = await call.block(reference)
    document = context.document
    schema = document.schema(block)
    if sets is _NOTHING:
        reject_read_only(call.actor, block, schema, names_of(path))
    else:
        _reject_other_read_only(call, document, block, path, sets)
    writes = plan(context, block)
    for one in writes:
        reject_read_only(call.actor, block, schema, names_of(one.path))
        count = one.items or 0
        what = f"The list would have {count} items"
        check_limit(count, context.limits, "list_items", what, "use several blocks")
    header = document.header(block)
    if header.is_written_by_program and header.status == Status.PENDING:
        call.kernel.writers.writes(call.actor, block)

    def change() -> None:
        for one in writes:
            one.apply()

    return await write(call, context, block, operation, change)


def _reject_other_read_only(
    call: Call, document: Document, block: str, path: str | None, value: Any
) -> None:
    """Refuse a value that differs from what is there in a part that is read-only."""
    schema = document.schema(block)
    part = part_at(schema, path)
    if isinstance(part, MapSchema | CompositeSchema) and isinstance(value, dict):
        for name, one in value.items():
            if name in dict(inner_parts(part)):
                _reject_other_read_only(call, document, block, joined(path, name), one)
        return
    if read_only_part(schema, names_of(path)) is None:
        return
    now = read_value(document, block, path) if part is not None else None
    if part is None or (
        canonical_json(now) != canonical_json(value) and (now or value is not None)
    ):
        reject_read_only(call.actor, block, schema, names_of(path))


async def _set_content(
    call: Call, reference: str, operation: str, path: str | None, value: Any
) -> WriteResult:
    """Set a part of a content, the items in it with their defaults, as `_write_content` does."""

    def plan(context: Context, block: str) -> list[Write]:
        filled = fill_items(part_of(context.document, block, path), value)
        if isinstance(value, str | list | dict):
            check_content_size(context, value, filled.added)
        else:
            check_value_size(context, value)
        return plan_set(context.document, block, path, filled.value)

    return await _write_content(call, reference, operation, path, plan, sets=value)


class SectionParams(BlockParams):
    """A block, or a section of it."""

    section: str | None = None
    """Path of a section; the whole content if absent."""

    def path(self, field: str | None) -> str | None:
        """Return the path of a field of the map that is there; without a name, of the section."""
        return self.section if field is None else joined(self.section, field)


class GetParams(SectionParams):
    """Content to read, and part of it."""

    field: str | None = None
    """Name of a field of the map that is there."""
    version: int | None = None
    """Read the content as it was at this version of the block; as it is now if absent."""


class GetResult(BlockResult):
    """A content as JSON."""

    value: Any = None
    """A text is a string, a list or log a list, a map or composite an object with all its names.
    A field without a value is null; asked for alone, it is absent."""
    violations: list[Violation]
    """In what it is not as the schema says; usually empty."""


@tool("block.get", needs=Permission.READ, errors=_READING)
async def get(call: Call, params: GetParams) -> GetResult:
    """Read the content of a block, or a section or field of it, as JSON."""
    context, block = await call.block(params.block_id)
    path = params.path(params.field)
    content = read_content(context.document, block, path)
    version = context.blocks.version(block)
    if params.version is not None and params.version != version:
        check_version(context, block, params.version)
        part, history = part_of(context.document, block, path), await context.history(block)
        content, version = content_at(history, part, path, params.version), params.version
    told = {"version": version, "value": content.value, "violations": list(content.violations)}
    return await context.persisted(GetResult.of(context, block, **told))


class RenderResult(BlockResult):
    """A content as text."""

    text: str
    """Fields and items line by line, sections under headings; `[read-only]` marks what only the
    system and sources write."""


@tool("block.render", needs=Permission.READ, errors=_READING)
async def render(call: Call, params: SectionParams) -> RenderResult:
    """Read the content of a block as text that people and models understand.

    Of a log only as many of the last entries are shown as its schema says.
    """
    context, block = await call.block(params.block_id)
    text = rendered(context.document, block, params.section)
    return await context.persisted(RenderResult.of(context, block, text=text))


class ExportResult(BlockResult):
    """A content with its schema: what `block.create` makes the same content of."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    block_schema: dict[str, Any] = Field(alias="schema")
    """Schema of the content."""
    content: Any
    """The content, as in `block.get`."""


@tool("block.export", needs=Permission.READ, errors=REFERENCES)
async def export_content(call: Call, params: BlockParams) -> ExportResult:
    """Return the whole content of a block as JSON, with its schema."""
    context, block = await call.block(params.block_id)
    schema = json.loads(encode_schema(context.document.schema(block)))
    content = read_content(context.document, block).value
    result = ExportResult.of(context, block, schema=schema, content=content)
    return await context.persisted(result)


class ImportParams(SectionParams):
    """A block, and what it or a section of it shall hold."""

    content: Any
    """As `block.export` gives it. Fields and sections that it does not name stay as they are."""


@tool("block.import", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def import_content(call: Call, params: ImportParams) -> WriteResult:
    """Set the content of a block, or of a section of it, all or nothing.

    Only what differs is changed. A log can only become longer. What is read-only may be named if
    it is the same.
    """
    return await _set_content(call, params.block_id, "import", params.section, params.content)


class SetFieldParams(SectionParams):
    """A field of a map, and its new value."""

    field: str
    """Name of the field."""
    value: Any
    """Value of the field's type; null takes the value away."""


@tool("block.set_field", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def set_field(call: Call, params: SetFieldParams) -> WriteResult:
    """Give a field of a map a value.

    Of a text or a list only what differs is changed, so that whoever writes in it at the same time
    loses nothing. A counter goes on by the difference.
    """
    path = params.path(params.field)
    return await _set_content(call, params.block_id, "set_field", path, params.value)


class IncrementParams(SectionParams):
    """A counter, and by how much it goes on."""

    field: str
    """Name of the counter."""
    by: int | float = 1
    """Less than 0 to count down."""


class IncrementResult(WriteResult):
    """New value of the counter."""

    value: int | float
    """The sum of all increments up to this one."""


@tool("block.increment", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def increment(call: Call, params: IncrementParams) -> IncrementResult:
    """Add to a counter. Increments that happen at the same time are all counted.

    Integers are exact at any length; decimals add up as they are written (0.1 and 0.2 are 0.3).
    """
    value: int | float = 0
    path = params.path(params.field)

    def plan(context: Context, block: str) -> list[Write]:
        nonlocal value
        planned = plan_increment(context.document, block, path, params.by)
        value = planned.value or 0
        return [planned]

    result = await _write_content(call, params.block_id, "increment", path, plan)
    return IncrementResult(**result.model_dump(), value=value)


class ItemsParams(SectionParams):
    """A list."""

    field: str | None = None
    """Name of the field, where the list is one of a map."""


class PushItemParams(ItemsParams):
    """A list, and what comes to its end."""

    value: Any
    """The item, any JSON that the list takes."""


@tool("block.push_item", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def push_item(call: Call, params: PushItemParams) -> WriteResult:
    """Put an item at the end of a list."""
    return await _add_item(call, params, "push_item", None)


async def _add_item(
    call: Call, params: PushItemParams, operation: str, index: int | None
) -> WriteResult:
    path = params.path(params.field)

    def plan(context: Context, block: str) -> list[Write]:
        part = part_of(context.document, block, path)
        schema = part.item_schema if isinstance(part, ListSchema | FieldSchema) else None
        filled = fill_items(schema, params.value, complete=True)
        check_value_size(context, params.value, filled.added)
        return [plan_insert(context.document, block, path, index, filled.value)]

    return await _write_content(call, params.block_id, operation, path, plan)


class InsertItemParams(PushItemParams):
    """A list, and what comes into it where."""

    index: int = Field(ge=0)
    """The item it comes before, counted from 0; the number of items puts it at the end."""


@tool("block.insert_item", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def insert_item(call: Call, params: InsertItemParams) -> WriteResult:
    """Put an item before another one of a list."""
    return await _add_item(call, params, "insert_item", params.index)


class DeleteItemParams(ItemsParams):
    """A list, and which of its items goes."""

    index: int = Field(ge=0)
    """The item, counted from 0."""


@tool("block.delete_item", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def delete_item(call: Call, params: DeleteItemParams) -> WriteResult:
    """Remove an item from a list."""
    path = params.path(params.field)

    def plan(context: Context, block: str) -> list[Write]:
        return [plan_delete(context.document, block, path, params.index)]

    return await _write_content(call, params.block_id, "delete_item", path, plan)


class AppendLogParams(SectionParams):
    """A log, and its next entry."""

    entry: Any
    """Any JSON."""


@tool("block.append_log", needs=Permission.WRITE, errors=_WRITING_CONTENT)
async def append_log(call: Call, params: AppendLogParams) -> WriteResult:
    """Add an entry to a log. Entries stay; rendering shows the last ones."""

    def plan(context: Context, block: str) -> list[Write]:
        check_value_size(context, params.entry)
        return [plan_append(context.document, block, params.section, params.entry)]

    return await _write_content(call, params.block_id, "append_log", params.section, plan)
