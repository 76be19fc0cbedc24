"""The history of blocks and contexts: who wrote what and when; earlier versions, undo and redo."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any, Self

from pydantic import Field

from antiphon_kernel.access import check_undo_of
from antiphon_kernel.contexts import Context, UndoKind
from antiphon_kernel.document.content import part_of, read_content, reject_violations
from antiphon_kernel.document.history.block_history import BlockHistory, content_at, plan_content_at
from antiphon_kernel.document.history.undo_units import UndoDirection, UpdatePlan
from antiphon_kernel.document.schema import names_of, part_at
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import (
    REFERENCES,
    BlockParams,
    ContextParams,
    Params,
    Result,
    TextParams,
    tool,
)
from antiphon_kernel.storage import ChangeRow, UndoRow
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.tools._common import (
    PrincipalResult,
    WriteResult,
    check_text,
    check_version,
    wait_persisted,
)
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import DriftState
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import reject_read_only


class VersionsParams(Params):
    """Range of a history."""

    after_version: int = Field(default=0, ge=0)
    limit: int = Field(default=100, ge=1, le=1_000)
    """Versions in one answer."""


class VersionInfo(PrincipalResult):
    """A change, and who made it."""

    version: int
    time: str
    operation: str

    @classmethod
    def of_change(cls, call: Call, change: ChangeRow[str], **fields: Any) -> Self:
        """Return what is told of a change, and further `fields`."""
        who, time = call.kernel.members.find(change.principal), iso_time(change.time)
        return cls.of(who, time=time, operation=change.operation, **fields)


class VersionsResult(Result):
    """Versions, oldest first."""

    truncated: bool
    next: int | None = None
    """Give it as `after_version` for the versions that follow."""


class HistoryParams(BlockParams, VersionsParams):
    """Block, and range of its history."""


class BlockVersion(VersionInfo):
    """One change of a block: its text, its header or both."""

    context_version: int


class HistoryResult(VersionsResult):
    """The versions of a block, oldest first."""

    versions: list[BlockVersion]
    """Oldest first."""


@tool("block.history", needs=Permission.READ, errors=REFERENCES)
async def history(call: Call, params: HistoryParams) -> HistoryResult:
    """List what has happened to a block: who changed it, when and how.

    `block.read` shows the text at any of these versions, `block.restore` brings it back.
    """
    context, block = await call.block(params.block_id)
    await context.wait_persisted()
    found = await context.journal.changes(block=block)
    later = [one for one in found if one.versions[block] > params.after_version]
    shown = later[: params.limit]
    truncated = len(later) > len(shown)
    return HistoryResult(
        versions=[
            BlockVersion.of_change(call, one, version=one.versions[block], context_version=one.seq)
            for one in shown
        ],
        truncated=truncated,
        next=shown[-1].versions[block] if truncated else None,
    )


class BlameRun(PrincipalResult):
    """Code points from `start` to `end` (exclusive) that one principal wrote in one change."""

    start: int
    """First code point."""
    end: int
    """Code point after the last."""
    version: int
    """Version that this change made, of the block or of the original in `source_block`."""
    source_block: str | None = None
    """Id of the original that has this version; absent if the block itself has it. What an import
    brought keeps the version that it had where it was exported."""
    source_block_name: str | None = None
    """The original by the names of its parts."""
    time: str


class BlameResult(Result):
    """Runs in order; together they are the text."""

    runs: list[BlameRun]
    """In the order of the text."""
    version: int


@tool("block.blame", needs=Permission.READ, errors=REFERENCES)
async def blame(call: Call, params: TextParams) -> BlameResult:
    """Say who wrote each character of a block, in which version, and when."""
    context, block = await call.block(params.block_id)
    check_text(context.document, block, params.section)
    history = await context.history(block)
    found, kernel = list(history.blame(params.section)), call.kernel
    runs = [
        BlameRun.of(
            kernel.members.find(run.stamp.principal),
            start=end - run.length,
            end=end,
            version=run.stamp.version,
            source_block=run.stamp.block,
            source_block_name=kernel.block_name(run.stamp.block) if run.stamp.block else None,
            time=iso_time(run.stamp.time),
        )
        for run, end in zip(found, accumulate(run.length for run in found), strict=True)
    ]
    return await context.persisted(BlameResult(runs=runs, version=context.blocks.version(block)))


class RestoreParams(TextParams):
    """Block and version to restore."""

    version: int = Field(ge=1)
    """The version whose content the block gets back."""


_READ_ONLY = (ErrorCode.READ_ONLY_FIELD, ErrorCode.READ_ONLY_SECTION)


@tool(
    "block.restore",
    needs=Permission.WRITE,
    errors=(*REFERENCES, *_READ_ONLY, ErrorCode.SCHEMA_VIOLATION),
)
async def restore(call: Call, params: RestoreParams) -> WriteResult:
    """Give a block the content that it had at an earlier version.

    It is an edit like any other: what is the same in both versions is left alone, and it can be
    undone. A log loses the entries that came later.
    """
    context, block = await call.block(params.block_id)
    document, section = context.document, params.section
    schema, names = document.schema(block), names_of(section)
    reject_read_only(call.actor, block, schema, names)
    if part_at(schema, section) is None:
        check_text(document, block, section)
    check_version(context, block, params.version)
    history = await context.history(block)
    context.appends.flush(block)
    part = part_of(document, block, section)
    planned = list(plan_content_at(history, part, names, params.version, document.client_id))
    for inner, _ in planned:
        reject_read_only(call.actor, block, schema, inner)
    before = read_content(document, block, section).violations
    after = content_at(history, part, section, params.version).violations
    reject_violations(block, [one for one in after if one not in before])
    plan = sum((one for _, one in planned), UpdatePlan())
    written = context.restore(call.actor, block, plan)
    return await wait_persisted(context, block, written)


class UndoParams(Params):
    """Last edit: author and scope."""

    block_id: str | None = None
    """Only edits of this block; of all blocks of the context but drafts if absent."""
    context: str | None = None
    principal: str | None = None
    """Username or id; oneself if absent."""
    edit: int | None = None
    """Only the edit that made this version of the context, whatever came later; it is the only way
    to name one that `message.split` made."""
    preview: bool = False
    """Only say what would change."""


class TextSize(Result):
    """Size of some text."""

    characters: int
    """Code points."""
    words: int
    """Parts between white space."""
    lines: int
    """Lines that end, and the rest behind the last of them."""

    @classmethod
    def of(cls, text: str) -> TextSize:
        """Measure a text."""
        return cls(characters=len(text), words=len(text.split()), lines=line_count(text))


class UndoResult(Result):
    """Blocks changed back."""

    time: str
    """When the edit began, or was undone or redone last."""
    removed: TextSize
    """Text that goes."""
    restored: TextSize
    """Text that comes back."""
    undone: list[str]
    undone_names: list[str]
    versions: dict[str, int]
    """The new version of each of them."""
    context_version: int


@tool(
    "block.undo",
    needs=Permission.WRITE,
    errors=(*REFERENCES, ErrorCode.NOTHING_TO_UNDO, *_READ_ONLY),
)
async def undo(call: Call, params: UndoParams) -> UndoResult:
    """Take back the last edit of one principal, never what somebody else wrote into it."""
    return await _apply(call, params, UndoDirection.UNDO)


@tool(
    "block.redo",
    needs=Permission.WRITE,
    errors=(*REFERENCES, ErrorCode.NOTHING_TO_REDO, *_READ_ONLY),
)
async def redo(call: Call, params: UndoParams) -> UndoResult:
    """Do again what was undone last."""
    return await _apply(call, params, UndoDirection.REDO)


async def _apply(call: Call, params: UndoParams, turn: UndoDirection) -> UndoResult:
    if params.block_id is not None:
        context, block = await call.block(params.block_id)
    else:
        context, block = await call.context(params.context), None
        context.appends.flush_all()
    whose = await _whose(call, params)
    found = await _undoable(call, context, whose.id, turn, block, params.edit)
    await _whose(call, params)
    if found is None:
        code = ErrorCode(f"nothing_to_{turn}")
        where = f"block {params.block_id}" if block is not None else f"context {context.label}"
        raise AntiphonError(
            code,
            f"There is nothing of {whose.username} to {turn} in {where}.",
            username=whose.username,
        )
    row, plan, histories = found
    texts = [one.undo_texts(row.unit, turn) for one in histories]
    removed, restored = map(TextSize.of, map("".join, zip(*texts, strict=True)))
    undone, versions, seq = [row.block], dict[str, int](), context.seq
    if not params.preview:
        blocks, drift = [one.block for one in histories], None
        if row.kind == UndoKind.DRIFT:
            state = DriftState.UNDONE if turn is UndoDirection.UNDO else DriftState.DELIVERED
            drift = call.kernel.drifts.of_unit(context.row, row.unit)
            drift = replace(drift, state=state)
        written = context.apply_undo(call.actor, row, plan, blocks, drift)
        if drift is not None:
            call.kernel.drifts.know(drift)
        await written.saved()
        undone, versions = list(written.versions), dict(written.versions)
        seq = written.seq
    return UndoResult(
        time=iso_time(row.time),
        removed=removed,
        restored=restored,
        undone=undone,
        undone_names=[context.block_name(one) for one in undone],
        versions=versions,
        context_version=seq,
    )


async def _undoable(
    call: Call,
    context: Context,
    principal: str,
    turn: UndoDirection,
    block: str | None,
    edit: int | None,
) -> tuple[UndoRow, UpdatePlan, list[BlockHistory]] | None:
    """Return the last unit whose undo (or redo) changes something, and what it changes in what.

    It holds until the next await. A unit that would change nothing, because others have removed all
    that it wrote, keeps its place: they may undo that. A draft is changed only if it is named. So
    is what a split removed, which the new block has: it would be there twice.

    Raises:
        AntiphonError: read_only_field or read_only_section if the caller must not change that.
    """
    passed = set[tuple[int, str]]()
    touched: dict[int, list[str]] = {}
    while True:
        for row in context.undo.rows(principal, turn, block):
            if (row.unit, row.block) in passed or (
                block is None and context.document.is_draft(row.block)
            ):
                continue
            if row.unit != edit if edit is not None else row.kind == UndoKind.SPLIT:
                continue
            is_drift = row.kind == UndoKind.DRIFT
            blocks = touched.get(row.unit) if is_drift else [row.block]
            histories = context.histories.opened(blocks) if blocks is not None else None
            if histories is None:
                break
            client = context.document.client_id
            plans = [one.plan_undo(row.unit, turn, client) for one in histories]
            if is_drift or any(plans):
                for one in histories:
                    schema = context.document.schema(one.block)
                    for names in one.changed_blocks(row.unit, turn):
                        reject_read_only(call.actor, one.block, schema, names)
                return row, sum(plans, UpdatePlan()), histories
            passed.add((row.unit, row.block))
        else:
            return None
        if is_drift and row.unit not in touched:
            (made,) = await context.journal.changes(row.unit - 1, limit=1)
            touched[row.unit] = list(made.versions)
        await context.histories.open(touched.get(row.unit, [row.block]))


async def _whose(call: Call, params: UndoParams) -> Principal:
    """The principal whose edit is meant, if the caller may touch it."""
    caller = call.actor.principal
    if params.principal is None:
        return caller
    whose = await call.kernel.members.look_up(params.principal)
    check_undo_of(whose, caller, call.role)
    return whose


class TimelineEntry(PrincipalResult):
    """Characters in a row that one principal wrote and that were there at the same versions."""

    text: str
    """The characters."""
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
async def timeline(call: Call, params: TextParams) -> TimelineResult:
    """Read everything that a block's text has ever held, and at which versions it was there.

    One answer is enough to show every version of the text, with its authors.
    """
    context, block = await call.block(params.block_id)
    check_text(context.document, block, params.section)
    history = await context.history(block)
    find = call.kernel.members.find
    result = TimelineResult(
        texts=[
            TimelineEntry.of(find(one.principal), text=one.text, since=one.since, until=one.until)
            for one in history.timeline(params.section)
        ],
        version=context.blocks.version(block),
    )
    return await context.persisted(result)


class ContextHistoryParams(ContextParams, VersionsParams):
    """Context, and range of its history."""

    last: int | None = Field(default=None, ge=1)
    """Only the last so many versions; all if absent."""


class ContextVersion(VersionInfo):
    """One change of a context."""

    blocks: dict[str, int]
    """For the id of each block that changed, the version of the block that this made."""


class ContextHistoryResult(VersionsResult):
    """The versions of a context, oldest first."""

    versions: list[ContextVersion]
    """Oldest first."""


@tool("context.history", needs=Permission.READ, errors=REFERENCES[1:])
async def context_history(call: Call, params: ContextHistoryParams) -> ContextHistoryResult:
    """List what has happened to a context: who changed which blocks, and when.

    `context.fork` copies it as it was at any of these versions.
    """
    context = await call.context(params.context)
    await context.wait_persisted()
    before = context.seq - params.last if params.last is not None else 0
    after = min(max(params.after_version, before), context.seq)
    found = await context.journal.changes(after, params.limit)
    truncated = bool(found) and found[-1].seq < context.seq
    return ContextHistoryResult(
        versions=[
            ContextVersion.of_change(call, one, version=one.seq, blocks=dict(one.versions))
            for one in found
        ],
        truncated=truncated,
        next=found[-1].seq if truncated else None,
    )
