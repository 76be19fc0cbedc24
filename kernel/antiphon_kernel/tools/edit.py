"""Changes of a text: `block.append`, `block.edit`, `block.splice` and `block.apply_patch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.history.block_history import StaleError, VersionMap
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import BlockParams, Params, Result, tool
from antiphon_kernel.text.edits import LineEdit, plan_edit
from antiphon_kernel.text.lines import line_count, split_lines
from antiphon_kernel.text.patch import plan_patch, read_patch
from antiphon_kernel.tools._common import (
    WRITING,
    WriteResult,
    check_version,
    check_writable,
    wait_persisted,
    write,
)
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.json_validation import has_whole_characters
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit, reject_long_text


class AppendParams(BlockParams):
    """Text for the end of a block."""

    text: str
    """Text to write."""
    section: str | None = None
    stream: bool = False
    """Answer at once and batch: only what has been flushed is acknowledged."""


class AppendResult(WriteResult):
    """State of the append."""

    unflushed: int | None = None
    """Code points that are buffered and not on disk yet; only when streaming."""


@tool(
    "block.append",
    needs=Permission.WRITE,
    errors=(
        *WRITING,
        ErrorCode.INVALID_TRANSITION,
    ),
)
async def append(call: Call, params: AppendParams) -> AppendResult:
    """Write at the end of a block that is not done yet."""
    section = params.section
    if params.stream:
        context, block, unflushed = await append_streamed(
            call, params.block_id, params.text, section
        )
        return AppendResult(
            version=context.blocks.version(block), context_version=context.seq, unflushed=unflushed
        )
    context, block = await _find_open_block(call, params.block_id, section)
    context.appends.flush(block)
    reject_long_text(context.limits, context.document.length(block, section) + len(params.text))
    written = context.append(call.actor, block, params.text, section)
    result = await wait_persisted(context, block, written)
    return AppendResult(version=result.version, context_version=result.context_version)


async def append_streamed(
    call: Call, reference: str, text: str, section: str | None = None
) -> tuple[Context, str, int]:
    """Buffer text for the end of a block that is not done yet.

    Writers in this process stream by it, without a request to encode, validate and answer.

    Returns the context, the block and how many code points are not flushed yet.

    Raises:
        AntiphonError: whatever block.append can fail with.
    """
    if not has_whole_characters(text):
        message = "The text has half a surrogate pair: append whole characters."
        raise invalid_params(message, field="text")
    context, block = await _find_open_block(call, reference, section)
    appends = context.appends
    waiting = appends.unflushed(block, section) + len(text)
    reject_long_text(context.limits, context.document.length(block, section) + waiting)
    unflushed = appends.add(call.actor, block, text, section)
    if unflushed and not context.document.tail_is_live(block, section):
        # The end is known now; its history may be let go of before the timer comes.
        appends.flush(block)
        unflushed = 0
    return context, block, unflushed


async def _find_open_block(call: Call, reference: str, section: str | None) -> tuple[Context, str]:
    """Find a block into whose text the caller may write at the end."""
    context, block = await call.kernel.find_block(reference)
    await context.prepare_append(block, section)
    call.check()
    check_writable(context.document, call.actor, block, section)
    header = context.document.header(block)
    if header.status in (Status.DONE, Status.ERROR):
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Block {reference} is {header.status}, so nothing can be appended;"
            " block.edit and block.splice still change its text.",
            status=str(header.status),
        )
    if header.is_written_by_program:
        call.kernel.writers.writes(call.actor, block)
    return context, block


class InsertOperation(Params):
    """Whole lines above line `line`; the number of lines puts them at the end."""

    op: Literal["insert"]
    line: int
    """The line that comes after them."""
    content: str
    """Whole lines: `"a"` and `"a\\n"` are one line, `"\\n"` is an empty one, `""` is none."""


class DeleteOperation(Params):
    """The lines from `start_line` to `end_line` (exclusive) go away."""

    op: Literal["delete"]
    start_line: int
    """First line that goes."""
    end_line: int
    """Line after the last one."""
    expected_text: str | None = None


class ReplaceOperation(Params):
    """Whole lines in the place of the lines from `start_line` to `end_line` (exclusive)."""

    op: Literal["replace"]
    start_line: int
    """First line that goes."""
    end_line: int
    """Line after the last one; `start_line` itself inserts."""
    content: str
    """Whole lines, as in an insert."""
    expected_text: str | None = None


Operation = Annotated[
    InsertOperation | DeleteOperation | ReplaceOperation, Field(discriminator="op")
]


class EditParams(BlockParams):
    """A batch of line operations; all line numbers refer to the text before the batch."""

    operations: list[Operation]
    """All of them happen, or none."""
    section: str | None = None
    base_version: int | None = None
    """The version of the block that line numbers and `expected_text` refer to; now if absent."""


@tool(
    "block.edit",
    needs=Permission.WRITE,
    errors=(
        *WRITING,
        ErrorCode.LINE_OUT_OF_RANGE,
        ErrorCode.CONTENT_MISMATCH,
        ErrorCode.STALE_VERSION,
        ErrorCode.OVERLAPPING_OPERATIONS,
    ),
)
async def edit(call: Call, params: EditParams) -> WriteResult:
    """Change lines of a block, all or nothing.

    Lines count from 0, ends are exclusive. With `expected_text` an operation fails unless the
    lines are what the caller believes them to be. With `base_version` it finds the lines that the
    caller read, wherever they are by now, or fails with the lines that stand there instead.
    """
    context, block = await call.block(params.block_id)
    section = params.section
    check_writable(context.document, call.actor, block, section)
    count, limits = len(params.operations), context.limits
    what = f"An edit has {count} operations"
    check_limit(count, limits, "operations_per_edit", what, "send several")
    operations = [
        LineEdit(one.line, one.line, one.content)
        if isinstance(one, InsertOperation)
        else LineEdit(**one.model_dump(exclude={"op"}))
        for one in params.operations
    ]
    splices = await plan_operations(context, block, section, operations, params.base_version)
    reject_grown_text(context, block, splices, section)
    change = partial(context.document.splice_all, block, splices, section)
    return await write(call, context, block, "edit", change)


async def plan_operations(
    context: Context,
    block: str,
    section: str | None,
    operations: Sequence[LineEdit],
    base_version: int | None,
) -> list[TextSplice]:
    """The splices that carry out operations on lines of an earlier version in the text now.

    Raises:
        AntiphonError: stale_version, with the lines as they are, or what `plan_edit` raises.
    """
    carried = await _map_to_current(context, block, section, base_version)
    version = context.blocks.version(block)
    if carried is not None:
        with AntiphonError.with_details(version=base_version):
            plan_edit(carried.before, operations)
        operations = [
            _map_operation(carried, index, one, version) for index, one in enumerate(operations)
        ]
    with AntiphonError.with_details(version=version):
        return plan_edit(context.document.text(block, section), operations)


def reject_grown_text(
    context: Context, block: str, splices: Sequence[TextSplice], section: str | None = None
) -> None:
    """Raises AntiphonError too_large if a text would be longer than allowed."""
    grown = sum(len(one.inserted) - one.deleted for one in splices)
    reject_long_text(context.limits, context.document.length(block, section) + grown)


class SpliceParams(BlockParams):
    """A change by position. Offsets count code points."""

    offset: int | None = Field(default=None, ge=0)
    """Code points before the place; the end if absent."""
    delete_count: int = Field(default=0, ge=0)
    """Code points that go."""
    insert: str = ""
    """Text that comes in their place."""
    section: str | None = None
    base_version: int | None = None
    """The version of the block that `offset` refers to; now if absent."""


@tool(
    "block.splice",
    needs=Permission.WRITE,
    errors=(*WRITING, ErrorCode.STALE_VERSION),
)
async def splice(call: Call, params: SpliceParams) -> WriteResult:
    """Replace code points of a block by position; meant for programs, models use block.edit.

    With `base_version` the offset is one of the text that the caller read: what others have
    inserted there since stays before the insertion, and what is deleted must be untouched.
    """
    context, block = await call.block(params.block_id)
    section = params.section
    check_writable(context.document, call.actor, block, section)
    offset = await current_offset(
        context, block, section, params.offset, params.delete_count, params.base_version
    )
    now = context.document.text(block, section)
    planned = TextSplice(offset, params.delete_count, params.insert)
    reject_grown_text(context, block, [planned], section)

    def change() -> None:
        if now[offset : offset + params.delete_count] != params.insert:
            context.document.splice(block, offset, params.delete_count, params.insert, section)

    return await write(call, context, block, "splice", change)


async def current_offset(
    context: Context,
    block: str,
    section: str | None,
    offset: int | None,
    deleted: int,
    base_version: int | None,
    means: str = "The splice deletes",
) -> int:
    """The offset now of a splice at an offset of an earlier version, until the next await.

    Args:
        means: how a refusal begins, before "text that has changed since".

    Raises:
        AntiphonError: stale_version, with the lines as they are, if what is deleted has changed;
            invalid_params if there is no such range.
    """
    carried = await _map_to_current(context, block, section, base_version)
    now, version = context.document.text(block, section), context.blocks.version(block)
    length = len(carried.before) if carried is not None else len(now)
    offset = length if offset is None else offset
    end = offset + deleted
    if end > length:
        raise invalid_params(
            f"The range {quote(offset)} to {quote(end)} is outside the text, which has"
            f" {length} code points: read the block again.",
            field="offset",
            length=length,
            version=version,
        )
    if carried is None:
        return offset
    try:
        return carried.splice(offset, deleted)
    except StaleError as stale:
        raise _stale(carried, stale, version, means) from stale


class ApplyPatchParams(BlockParams):
    """A unified diff of one text, as `diff -u` and git make it; file headers may be left out."""

    patch: str
    """The diff, of one file."""
    section: str | None = None
    dry_run: bool = False
    """Say whether it would apply, and change nothing."""


class ApplyPatchResult(Result):
    """Outcome of the patch."""

    success: bool
    """Whether every hunk applies."""
    errors: list[str] | None = None
    """Only with `dry_run`: one sentence for each hunk that fails."""
    version: int | None = None
    """How often the block has changed; absent with `dry_run`."""
    context_version: int | None = None
    """The version of the context; absent with `dry_run`."""


@tool(
    "block.apply_patch",
    needs=Permission.WRITE,
    errors=(*WRITING, ErrorCode.PATCH_FAILED),
)
async def apply_patch(call: Call, params: ApplyPatchParams) -> ApplyPatchResult:
    """Apply a unified diff to a block, all or nothing.

    Kept and removed lines must be in the text exactly, the missing newline at its end included
    (the patch says that with a line `\\ No newline at end of file`). A hunk whose lines are not
    where its header says may move, but only to the one place in the text that has them.
    """
    context, block = await call.block(params.block_id)
    check_writable(context.document, call.actor, block, params.section)
    size, limits = len(params.patch), context.limits
    what = f"The patch has {size} code points"
    check_limit(size, limits, "patch_code_points", what, "split it")
    text = context.document.text(block, params.section)
    try:
        splices = plan_patch(text, read_patch(params.patch))
    except AntiphonError as error:
        if params.dry_run:
            return ApplyPatchResult(success=False, errors=error.details["errors"])
        raise
    places = len(splices)
    what = f"The patch changes {places} places"
    check_limit(places, limits, "splices_per_patch", what, "split it")
    reject_grown_text(context, block, splices, params.section)
    if params.dry_run:
        return ApplyPatchResult(success=True, errors=[])
    change = partial(context.document.splice_all, block, splices, params.section)
    result = await write(call, context, block, "apply_patch", change)
    return ApplyPatchResult(success=True, **result.model_dump())


_FRESH_LINES: Final = 200
"""Lines that a refusal shows at most."""


async def _map_to_current(
    context: Context, block: str, section: str | None, version: int | None
) -> VersionMap | None:
    """The earlier version of a text beside the text now; None if it is the version now.

    Until the next await, the text now is the document's, streamed appends included.

    Raises:
        AntiphonError: invalid_params if the block has never had this version; storage_failed.
    """
    if version is None or version == context.blocks.version(block):
        return None
    check_version(context, block, version)
    history = await context.history(block)
    context.appends.flush(block)
    return VersionMap(history, section, version)


def _map_operation(carried: VersionMap, index: int, operation: LineEdit, version: int) -> LineEdit:
    try:
        start, end = carried.lines(operation.start_line, operation.end_line)
    except StaleError as stale:
        raise _stale(
            carried, stale, version, f"Operation {index} means", operation=index
        ) from stale
    return replace(operation, start_line=start, end_line=end)


def _stale(
    carried: VersionMap, stale: StaleError, version: int, means: str, **details: int
) -> AntiphonError:
    now = carried.now
    first = now.count("\n", 0, stale.start)
    begin = now.rfind("\n", 0, stale.start) + 1
    end = now.find("\n", max(stale.end - 1, begin))
    lines = split_lines(now[begin : end if end >= 0 else len(now)] if stale.end > begin else "")
    return AntiphonError(
        ErrorCode.STALE_VERSION,
        f"{means} text that has changed since: the block is at version {version}, and `lines` is"
        " what stands there now; decide again and send it with that version.",
        version=version,
        start_line=first,
        end_line=first + len(lines),
        lines=lines[:_FRESH_LINES],
        line_count=line_count(now),
        **details,
    )
