"""Reading of blocks: `block.read` and `block.list`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pydantic import Field

from antiphon_kernel.contexts import BlockInfo, Context, header_values
from antiphon_kernel.document.rendering import render
from antiphon_kernel.files.file_contexts import FILE_PREFIX, FilePlace
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, ContextParams, Params, TextParams, tool
from antiphon_kernel.text.lines import line_count, lines_between, number_lines
from antiphon_kernel.tools._common import PageResult, block_in, check_text, text_at
from antiphon_kernel.types.clock import iso_time_if
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.roles import Permission


class LineRange(Params):
    """Lines from `start` to `end` (exclusive), counted from 0."""

    start: int = Field(ge=0)
    """First line."""
    end: int = Field(ge=0)
    """Line after the last one."""


class ReadParams(TextParams):
    """Block and range to read."""

    line_numbers: bool = False
    range: LineRange | None = None
    """All of it if absent, or the lines that `block_id` names: `file:PATH#L10-L20`."""
    version: int | None = None
    """Read the text as it was at this version of the block; as it is now if absent."""


class ReadResult(BlockInfo):
    """The text of a block and its header."""

    content: str
    """The text, or the lines that were asked for."""
    line_count: int
    """Lines of the whole text."""
    lease: str | None = None
    """A model's or a tool's block that calls with sessions of their own write: when it is
    interrupted unless another write comes before."""


@tool(
    "block.read",
    needs=Permission.READ,
    errors=(
        *REFERENCES,
        ErrorCode.LINE_OUT_OF_RANGE,
    ),
)
async def read(call: Call, params: ReadParams) -> ReadResult:
    """Read a block, or some of its lines."""
    context, block = await call.block(params.block_id)
    section = params.section
    check_text(context.document, block, section)
    content = text = await text_at(context, block, params.version, section)
    lines = range(params.range.start, params.range.end) if params.range is not None else None
    if lines is None and params.block_id.startswith(FILE_PREFIX):
        lines = FilePlace.parse(params.block_id).lines
    first = lines.start if lines is not None else 0
    if lines is not None:
        version = params.version or context.blocks.version(block)
        with AntiphonError.with_details(version=version):
            content = lines_between(text, first, lines.stop)
    if params.line_numbers:
        content = number_lines(content, first)
    header = header_values(context, block)
    if params.version is not None:
        header["version"] = params.version
    is_programs = context.document.header(block).is_written_by_program
    left = call.kernel.writers.lease_seconds(block) if is_programs else None
    lease = call.kernel.clock.now_ms() + round(left * 1_000) if left is not None else None
    result = ReadResult(
        content=content, line_count=line_count(text), lease=iso_time_if(lease), **header
    )
    return await context.persisted(result)


_SUMMARY = 80


class ListParams(ContextParams):
    """Filter for blocks. Every criterion given must hold."""

    parent_id: str | None = None
    """Only what answers this block, directly or, with `depth`, at some removes."""
    kind: BlockKind | None = None
    role: Role | None = None
    status: Status | None = None
    path_prefix: str | None = None
    """How the `path` of the block begins."""
    depth: int | None = Field(default=None, ge=1)
    """How many generations below `parent_id`; 1 if absent. Needs `parent_id`."""
    after_block: str | None = None
    limit: int = Field(default=100, ge=1, le=1_000)
    """Blocks in one answer."""


class BlockSummary(BlockInfo):
    """The header of a block and how its text begins."""

    summary: str
    """The first line, shortened."""
    length: int
    """Code points of the text."""
    dirty: bool
    """Whether a newer version than that on disk has come in meanwhile."""


class ListResult(PageResult):
    """Blocks in document order."""

    blocks: list[BlockSummary]
    """In document order."""


@tool("block.list", needs=Permission.READ, errors=REFERENCES)
async def list_blocks(call: Call, params: ListParams) -> ListResult:
    """List the blocks of a context in document order.

    Page by page: blocks that are created meanwhile neither hide others nor show them twice.
    """
    if params.depth is not None and params.parent_id is None:
        raise invalid_params(
            "depth counts generations below a block: give parent_id with it.",
            field="depth",
        )
    below, behind = params.parent_id, params.after_block
    reference = below if below is not None else behind
    if reference is not None and params.context is None:
        context, _ = await call.block(reference)
    else:
        context = await call.context(params.context)
    parent = await block_in(call, context, below) if below is not None else None
    after = await block_in(call, context, behind) if behind is not None else None
    context.appends.flush_all()
    page = list(islice(_matching(context, params, parent, after), params.limit + 1))
    values = [{**_summary(context, one), **header_values(context, one)} for one in page]
    await context.wait_persisted()
    blocks = [
        BlockSummary(
            **one, dirty=context.blocks.version(block) > context.blocks.persisted.get(block, 0)
        )
        for block, one in zip(page, values, strict=True)
    ]
    if len(blocks) <= params.limit:
        return ListResult(blocks=blocks, truncated=False)
    blocks.pop()
    last = blocks[-1]
    return ListResult(blocks=blocks, truncated=True, next=last.block_id, next_name=last.name)


def _summary(context: Context, block: str) -> dict[str, Any]:
    text = render(context.document, block)
    first = text.split("\n", 1)[0]
    return {
        "summary": first if len(first) <= _SUMMARY else first[: _SUMMARY - 1] + "…",
        "length": len(text),
    }


def _matching(
    context: Context, params: ListParams, parent: str | None, after: str | None
) -> Iterator[str]:
    """In document order, behind `after`."""
    document, order, prefix = context.document, context.document.order, params.path_prefix
    if parent is None:
        start = order.index(after) + 1 if after is not None else 0
        found = (order.at(place) for place in range(start, len(order)))
    else:
        key = order.key(after) if after is not None else None
        below = context.block_tree.descendants(parent, params.depth or 1)
        found = (one for one in below if key is None or order.key(one) > key)
    for block in found:
        header = document.header(block)
        if (
            params.kind in (None, header.kind)
            and params.role in (None, header.role)
            and params.status in (None, header.status)
            and (prefix is None or (header.path is not None and header.path.startswith(prefix)))
        ):
            yield block
