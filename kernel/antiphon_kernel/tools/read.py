"""`block.read`."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.contexts import BlockInfo, header_values
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, tool
from antiphon_kernel.text.lines import line_count, lines_between, number_lines
from antiphon_kernel.tools.text_access import check_text
from antiphon_kernel.tools.version_map import check_version
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission


class LineRange(Params):
    """Lines from `start` to `end` (exclusive), counted from 0."""

    start: int = Field(ge=0)
    """First line."""
    end: int = Field(ge=0)
    """Line after the last one."""


class ReadParams(Params):
    """Block and range to read."""

    block_id: str
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""
    line_numbers: bool = False
    """Put number and tab before each line; without, `content` is exactly the text."""
    range: LineRange | None = None
    """All of it if absent."""
    version: int | None = None
    """Read the text as it was at this version of the block; as it is now if absent."""


class ReadResult(BlockInfo):
    """The text of a block and its header."""

    content: str
    """The text, or the lines that were asked for."""
    line_count: int
    """Lines of the whole text."""


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
    if params.version is not None and params.version != context.version(block):
        check_version(context, block, params.version)
        text = (await context.history(block)).text(section, params.version)
    else:
        text = context.document.text(block, section)
    content = text
    first = 0
    if params.range is not None:
        first = params.range.start
        content = lines_between(text, first, params.range.end)
    if params.line_numbers:
        content = number_lines(content, first)
    header = header_values(context, block)
    if params.version is not None:
        header["version"] = params.version
    result = ReadResult(content=content, line_count=line_count(text), **header)
    await context.wait_persisted()
    return result
