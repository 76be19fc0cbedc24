"""`block.list`."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from antiphon_kernel.kernel.context import Context
from antiphon_kernel.kernel.kernel import Call
from antiphon_kernel.kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.kernel.tools.block_header import BlockInfo, header_values
from antiphon_kernel.types.access import Right
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_SUMMARY = 80


class ListParams(Params):
    """Which blocks. Every filter that is given must hold."""

    context: str | None = None
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
    """Go on after this block: the `next` of the previous answer."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Blocks in one answer."""


class BlockSummary(BlockInfo):
    """The header of a block and how its text begins."""

    summary: str
    """The first line, shortened."""
    length: int
    """Code points of the text."""


class ListResult(Result):
    """Blocks in document order."""

    blocks: list[BlockSummary]
    """In document order."""
    truncated: bool
    """Whether there are more than these."""
    next: str | None = None
    """What to pass as `after_block` for the rest."""


@tool("block.list", needs=Right.READ, errors=REFERENCES)
async def list_blocks(call: Call, params: ListParams) -> ListResult:
    """List the blocks of a context in document order."""
    if params.depth is not None and params.parent_id is None:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            "depth counts generations below a block: give parent_id with it.",
            field="depth",
        )
    parent = await call.block(params.parent_id) if params.parent_id is not None else None
    context = parent[0] if parent and not params.context else await call.context(params.context)
    call.kernel.appends(context).flush_all()
    after = (await call.block(params.after_block))[1] if params.after_block is not None else None
    found = _matching(context, params, parent[1] if parent else None, after)
    blocks: list[BlockSummary] = []
    for block in found:
        if len(blocks) == params.limit:
            await context.settled()
            return ListResult(blocks=blocks, truncated=True, next=blocks[-1].block_id)
        text = context.document.text(block)
        first = text.split("\n", 1)[0]
        blocks.append(
            BlockSummary(
                summary=first if len(first) <= _SUMMARY else first[: _SUMMARY - 1] + "…",
                length=len(text),
                **header_values(context, block),
            )
        )
    await context.settled()
    return ListResult(blocks=blocks, truncated=False)


def _matching(
    context: Context, params: ListParams, parent: str | None, after: str | None
) -> Iterator[str]:
    document = context.document
    ids = document.block_ids()
    if after is not None:
        if after not in document:
            raise AntiphonError(
                ErrorCode.BLOCK_NOT_FOUND,
                f"There is no block {after!r} in context {context.label}.",
                reference=after,
            )
        ids = ids[ids.index(after) + 1 :]
    for block in ids:
        header = document.header(block)
        wanted = (
            params.kind in (None, header.kind)
            and params.role in (None, header.role)
            and params.status in (None, header.status)
            and (params.path_prefix is None or (header.path or "").startswith(params.path_prefix))
        )
        if wanted and (parent is None or _descends(context, block, parent, params.depth or 1)):
            yield block


def _descends(context: Context, block: str, parent: str, depth: int) -> bool:
    at: str | None = block
    for _ in range(depth):
        at = context.document.header(at).parent if at is not None else None
        if at == parent:
            return True
        if at is None or at not in context.document:
            return False
    return False
