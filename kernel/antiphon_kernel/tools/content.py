"""`block.get`, `block.render`, `block.export` and `block.import`."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ConfigDict, Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content import read_content
from antiphon_kernel.document.content_writes import Write, plan_set
from antiphon_kernel.document.rendering import render as rendered
from antiphon_kernel.document.schema import encode_schema
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.tools.content_writing import (
    WRITING_CONTENT,
    path_to,
    write_content,
)
from antiphon_kernel.tools.sizes import check_content_size
from antiphon_kernel.tools.writing import WriteResult
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission


class GetParams(Params):
    """Content to read, and part of it."""

    block_id: str
    section: str | None = None
    """Path of a section; the whole content if absent."""
    field: str | None = None
    """Name of a field of the map that is there."""


class BrokenRule(Result):
    """Something that is not as the schema says, like an item too many that an undo brought back."""

    path: str | None = None
    """The section or field; absent if it is the whole content."""
    rule: str
    """`type`, `required`, `max_items`, `unknown_name` or `unreadable`."""
    expected: str
    """What the schema asks for, in words."""
    found: str
    """What is there, shortened."""
    item: int | None = None
    """Which item of a list or log, counted from 0."""


class GetResult(Result):
    """A content as JSON."""

    block_id: str
    version: int
    value: Any = None
    """A text is a string, a list or log a list, a map or composite an object with all its names.
    A field without a value is null; asked for alone, it is absent."""
    violations: list[BrokenRule]
    """In what it is not as the schema says; usually empty."""


READING = (*REFERENCES, ErrorCode.SCHEMA_VIOLATION)


@tool("block.get", needs=Permission.READ, errors=READING)
async def get(call: Call, params: GetParams) -> GetResult:
    """Read the content of a block, or a section or field of it, as JSON."""
    context, block = await call.block(params.block_id)
    content = read_content(context.document, block, path_to(params.section, params.field))
    result = GetResult(
        block_id=block,
        version=context.version(block),
        value=content.value,
        violations=[BrokenRule(**one.as_json()) for one in content.violations],
    )
    await context.wait_persisted()
    return result


class RenderParams(Params):
    """Content or section to render."""

    block_id: str
    section: str | None = None
    """Path of a section; the whole content if absent."""


class RenderResult(Result):
    """A content as text."""

    block_id: str
    version: int
    text: str
    """Fields and items line by line, sections under headings; `[read-only]` marks what only the
    system and sources write."""


@tool("block.render", needs=Permission.READ, errors=READING)
async def render(call: Call, params: RenderParams) -> RenderResult:
    """Read the content of a block as text that people and models understand.

    Of a log only as many of the last entries are shown as its schema says.
    """
    context, block = await call.block(params.block_id)
    text = rendered(context.document, block, params.section)
    result = RenderResult(block_id=block, version=context.version(block), text=text)
    await context.wait_persisted()
    return result


class ExportParams(Params):
    """Block to export."""

    block_id: str


class ExportResult(Result):
    """A content with its schema: what `block.create` makes the same content of."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    block_id: str
    version: int
    block_schema: dict[str, Any] = Field(alias="schema")
    """What the content looks like."""
    content: Any
    """The content, as in `block.get`."""


@tool("block.export", needs=Permission.READ, errors=REFERENCES)
async def export_content(call: Call, params: ExportParams) -> ExportResult:
    """Take the whole content of a block out, with its schema."""
    context, block = await call.block(params.block_id)
    result = ExportResult(
        block_id=block,
        version=context.version(block),
        schema=json.loads(encode_schema(context.document.schema(block))),
        content=read_content(context.document, block).value,
    )
    await context.wait_persisted()
    return result


class ImportParams(Params):
    """A block, and what it or a section of it shall hold."""

    block_id: str
    content: Any
    """As `block.export` gives it. Fields and sections that it does not name stay as they are."""
    section: str | None = None
    """Path of a section; the whole content if absent."""


@tool("block.import", needs=Permission.WRITE, errors=WRITING_CONTENT)
async def import_content(call: Call, params: ImportParams) -> WriteResult:
    """Set the content of a block, or of a section of it, all or nothing.

    Only what differs is changed. A log can only become longer. What is read-only may be named if
    it is the same.
    """

    def plan(context: Context, block: str) -> list[Write]:
        check_content_size(context, params.content)
        return plan_set(context.document, block, params.section, params.content)

    return await write_content(call, params.block_id, "import", plan)
