"""Merging a text that was changed elsewhere into a block that others may have changed meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from antiphon_kernel.document.document import Document
from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

Call = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]

_CONFLICTS = (ErrorCode.STALE_VERSION, ErrorCode.CONTENT_MISMATCH)


class Merged(NamedTuple):
    """Result of a merge."""

    made: int
    """Changes that were made."""
    conflicts: int
    """Changes of lines that others have changed, too: these were not made."""


def with_the_same_end(before: str, after: str) -> str:
    """Return `after` with a newline at its end if `before` has one, else without."""
    if not after or before.endswith("\n") == after.endswith("\n"):
        return after
    return after + "\n" if before.endswith("\n") else after[:-1]


def line_operations(before: str, after: str) -> list[dict[str, Any]]:
    """Return the operations of `block.edit` that make `before` into `after`."""
    old, new = split_lines(before), split_lines(after)
    return [
        {
            "op": "replace",
            "start_line": one.start,
            "end_line": one.end,
            "content": "".join(f"{line}\n" for line in new[one.new_start : one.new_end]),
        }
        for one in changed_ranges(old, new)
    ]


async def merge_text(call: Call, block: str, before: str, after: str, version: int) -> Merged:
    """Make the changes from `before`, which was the text at `version`, to `after` in a block.

    Raises:
        AntiphonError: if the block cannot be written at all.
    """
    operations = line_operations(before, with_the_same_end(before, after))
    if not operations:
        return Merged(0, 0)
    if await _edited(call, block, operations, version):
        return Merged(len(operations), 0)
    made = 0
    for one in operations:
        made += await _edited(call, block, [one], version)
    return Merged(made, len(operations) - made)


async def _edited(
    call: Call, block: str, operations: Sequence[Mapping[str, Any]], version: int
) -> bool:
    params = {"block_id": block, "operations": list(operations), "base_version": version}
    try:
        await call("block.edit", params)
    except AntiphonError as error:
        if error.code in _CONFLICTS:
            return False
        raise
    return True


def repeat_edits(document: Document, block: str, before: str, after: str) -> None:
    """Make the changes from `before` to `after` in a block of a document, if it is there."""
    if block not in document:
        return
    for one in plan_difference(before, after):
        others = plan_difference(before, document.text(block))
        start, end = (
            shift_through(place, others, stick="right")
            for place in (one.offset, one.offset + one.deleted)
        )
        document.splice(block, start, end - start, one.inserted)
        before = before[: one.offset] + one.inserted + before[one.offset + one.deleted :]
