"""From line numbers and offsets of an earlier version of a block to those of its text now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.history.version_map import StaleError, VersionMap
from antiphon_kernel.kernel import Call
from antiphon_kernel.text.edits import EditOperation, Insert, plan_edit
from antiphon_kernel.text.lines import line_count, split_lines
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote

_FRESH_LINES: Final = 200
"""Lines that a refusal shows at most."""


async def map_to_current(
    call: Call, context: Context, block: str, section: str | None, version: int | None
) -> VersionMap | None:
    """The earlier version of a text beside the text now; None if it is the version now.

    Until the next await, the text now is the document's, streamed appends included.

    Raises:
        AntiphonError: invalid_params if the block has never had this version; storage_failed.
    """
    if version is None or version == context.version(block):
        return None
    check_version(context, block, version)
    history = await call.history(context, block)
    context.appends.flush(block)
    return VersionMap(history, section, version)


def check_version(context: Context, block: str, version: int) -> None:
    """Raises AntiphonError invalid_params if a block has never had a version."""
    now = context.version(block)
    if not 1 <= version <= now:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"There is no version {quote(version)} of block {block}: it has had 1 to {now};"
            " give one that a read or a change has answered.",
            field="version",
            found=version,
            version=now,
        )


def map_operations(
    carried: VersionMap, operations: Sequence[EditOperation], version: int
) -> list[EditOperation]:
    """Operations on the lines of the earlier version, as operations on the lines now.

    Args:
        version: of the block now.

    Raises:
        AntiphonError: stale_version if a line that one of them touches is not there any more;
            whatever is wrong with them in the earlier version.
    """
    plan_edit(carried.before, operations)
    return [_map_operation(carried, index, one, version) for index, one in enumerate(operations)]


def _map_operation(
    carried: VersionMap, index: int, operation: EditOperation, version: int
) -> EditOperation:
    try:
        if isinstance(operation, Insert):
            return replace(operation, line=carried.line(operation.line))
        start, end = carried.lines(operation.start_line, operation.end_line)
    except StaleError as stale:
        raise _stale(
            carried, stale, version, f"Operation {index} means", operation=index
        ) from stale
    return replace(operation, start_line=start, end_line=end)


def map_splice(carried: VersionMap, offset: int, deleted: int, version: int) -> int:
    """An offset in the earlier version, as an offset now.

    Args:
        version: of the block now.

    Raises:
        AntiphonError: stale_version if what is to be deleted has been touched since.
    """
    try:
        return carried.splice(offset, deleted)
    except StaleError as stale:
        raise _stale(carried, stale, version, "The splice deletes") from stale


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
