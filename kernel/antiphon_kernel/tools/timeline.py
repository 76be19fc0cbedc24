"""`block.timeline` and `context.history`: everything that was there, and when."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.tools._common import check_text
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.roles import Permission


class TimelineParams(Params):
    """Text of a block."""

    block_id: str
    section: str | None = None


class TimelineEntry(Result):
    """Characters in a row that one principal wrote and that were there at the same versions."""

    text: str
    """The characters."""
    principal: str
    username: str
    since: int
    """The first version of the block that has them."""
    until: int | None = None
    """The first later version that does not; absent if they are there now."""


class TimelineResult(Result):
    """Everything that a text has ever held."""

    texts: list[TimelineEntry]
    """In the order of the text: those that were there at one version are the text as it was."""
    version: int


@tool("block.timeline", needs=Permission.READ, errors=REFERENCES)
async def timeline(call: Call, params: TimelineParams) -> TimelineResult:
    """Read everything that a block's text has ever held, and at which versions it was there.

    One answer is enough to show every version of the text, with its authors.
    """
    context, block = await call.block(params.block_id)
    check_text(context.document, block, params.section)
    history = await context.history(block)
    found, version = history.timeline(params.section), context.version(block)
    names = {one: call.kernel.find_principal(one).username for one in {t.principal for t in found}}
    await context.wait_persisted()
    return TimelineResult(
        texts=[
            TimelineEntry(
                text=one.text,
                principal=one.principal,
                username=names[one.principal],
                since=one.since,
                until=one.until,
            )
            for one in found
        ],
        version=version,
    )


class ContextHistoryParams(Params):
    """Context, and range of its history."""

    context: str | None = None
    """Label or id; the default context if absent."""
    after_version: int = Field(default=0, ge=0)
    """Go on after this version: the `next` of the previous answer."""
    last: int | None = Field(default=None, ge=1)
    """Only the last so many versions; all if absent."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Versions in one answer."""


class ContextVersion(Result):
    """One change of a context."""

    version: int
    time: str
    principal: str
    username: str
    operation: str
    """Operation: create, append, edit, splice, sync (typed by a connected client), ..."""
    blocks: dict[str, int]
    """For the id of each block that changed, the version of the block that this made."""


class ContextHistoryResult(Result):
    """The versions of a context, oldest first."""

    versions: list[ContextVersion]
    """Oldest first."""
    truncated: bool
    next: int | None = None
    """Give it as `after_version` for the versions that follow."""


@tool("context.history", needs=Permission.READ, errors=REFERENCES[1:])
async def context_history(call: Call, params: ContextHistoryParams) -> ContextHistoryResult:
    """List what has happened to a context: who changed which blocks, and when.

    `context.fork` copies it as it was at any of these versions.
    """
    context = await call.context(params.context)
    await context.wait_persisted()
    before = context.seq - params.last if params.last is not None else 0
    after = min(max(params.after_version, before), context.seq)
    found = await context.changes_after(after, params.limit)
    truncated = bool(found) and found[-1].version < context.seq
    return ContextHistoryResult(
        versions=[
            ContextVersion(
                version=one.version,
                time=iso_time(one.time),
                principal=one.principal,
                username=call.kernel.find_principal(one.principal).username,
                operation=one.operation,
                blocks=dict(one.blocks),
            )
            for one in found
        ],
        truncated=truncated,
        next=found[-1].version if truncated else None,
    )
