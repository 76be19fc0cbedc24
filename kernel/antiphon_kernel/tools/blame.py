"""`block.blame`."""

from __future__ import annotations

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.tools.text_access import check_text
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.roles import Permission


class BlameParams(Params):
    """Block to blame."""

    block_id: str
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""


class BlameRun(Result):
    """Code points from `start` to `end` (exclusive) that one principal wrote in one change."""

    start: int
    """First code point."""
    end: int
    """Code point after the last."""
    principal: str
    username: str
    version: int
    """Version of the block that this change made."""
    time: str


class BlameResult(Result):
    """Runs in order; together they are the text."""

    runs: list[BlameRun]
    """In the order of the text."""
    version: int


@tool("block.blame", needs=Permission.READ, errors=REFERENCES)
async def blame(call: Call, params: BlameParams) -> BlameResult:
    """Say who wrote each character of a block, in which version, and when."""
    context, block = await call.block(params.block_id)
    check_text(context.document, block, params.section)
    history = await context.history(block)
    runs: list[BlameRun] = []
    names: dict[str, str] = {}
    at = 0
    for run in history.blame(params.section):
        stamp = run.stamp
        if stamp.principal not in names:
            names[stamp.principal] = call.kernel.find_principal(stamp.principal).username
        runs.append(
            BlameRun(
                start=at,
                end=at + run.length,
                principal=stamp.principal,
                username=names[stamp.principal],
                version=stamp.version,
                time=iso_time(stamp.time),
            )
        )
        at += run.length
    result = BlameResult(runs=runs, version=context.version(block))
    await context.wait_persisted()
    return result
