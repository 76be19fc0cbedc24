"""`block.history`."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.roles import Permission


class HistoryParams(Params):
    """Block, and range of its history."""

    block_id: str
    after_version: int = Field(default=0, ge=0)
    """Go on after this version: the `next` of the previous answer."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Versions in one answer."""


class BlockVersion(Result):
    """One change of a block: its text, its header or both."""

    version: int
    time: str
    principal: str
    username: str
    operation: str
    """What changed it: create, append, edit, splice, sync (typed by a connected client), ..."""
    context_version: int


class HistoryResult(Result):
    """The versions of a block, oldest first."""

    versions: list[BlockVersion]
    """Oldest first."""
    truncated: bool
    next: int | None = None
    """Give it as `after_version` for the versions that follow."""


@tool("block.history", needs=Permission.READ, errors=REFERENCES)
async def history(call: Call, params: HistoryParams) -> HistoryResult:
    """List what has happened to a block: who changed it, when and how.

    `block.read` shows the text at any of these versions, `block.restore` brings it back.
    """
    context, block = await call.block(params.block_id)
    await context.wait_persisted()
    found = await context.changes(block)
    later = [one for one in found if one.version > params.after_version]
    shown = later[: params.limit]
    truncated = len(later) > len(shown)
    return HistoryResult(
        versions=[
            BlockVersion(
                version=one.version,
                time=iso_time(one.time),
                principal=one.principal,
                username=call.kernel.find_principal(one.principal).username,
                operation=one.operation,
                context_version=one.seq,
            )
            for one in shown
        ],
        truncated=truncated,
        next=shown[-1].version if truncated else None,
    )
