"""Reading and changing files by their paths: `file.read`, `file.edit` and `file.patch`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Final, NamedTuple

from pydantic import Field

from antiphon_kernel.contexts import UndoKind
from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.text.edits import LineEdit
from antiphon_kernel.text.findings import finding_text
from antiphon_kernel.text.lines import line_count, lines_between, number_lines, split_lines
from antiphon_kernel.text.patch import plan_patch, split_patch, unified_diff
from antiphon_kernel.text.splice_diff import apply_splices, plan_difference
from antiphon_kernel.tools._common import WRITING, text_at
from antiphon_kernel.tools.edit import current_offset, plan_operations, reject_grown_text
from antiphon_kernel.tools.file import FileInfo, FileParams, file_info
from antiphon_kernel.types.block_metadata import FINDINGS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import join_names, quote
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit

_READING: Final = (ErrorCode.TOO_LARGE, ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.LINE_OUT_OF_RANGE)
_ALIKE: Final = 0.6
"""Likeness of a line, from 0 to 1, that is shown for one that is not there."""


class FileReadParams(FileParams):
    """File and lines to read."""

    start_line: int = Field(default=0, ge=0)
    """First line, counted from 0."""
    end_line: int | None = Field(default=None, ge=0)
    """Line after the last one; the end of the file if absent, or if it has fewer."""
    line_numbers: bool = False


class FileReadResult(FileInfo):
    """The text of a file, and how it stands to the disk."""

    content: str
    """The text, or the lines that were asked for."""
    findings: list[str] | None = None
    """Each with its line, what checks and a language server have found in the file."""


@tool("file.read", needs=Permission.READ, errors=_READING)
async def read_file(call: Call, params: FileReadParams) -> FileReadResult:
    """Read a file of the project, or some of its lines, with what is not saved yet."""
    file = await call.file(params.path)
    text, version = file.now()
    count, first = line_count(text), params.start_line
    end = count if params.end_line is None else min(params.end_line, count)
    with AntiphonError.with_details(version=version):
        content = lines_between(text, first, max(first, end))
    if params.line_numbers:
        content = number_lines(content, first)
    found = file.context.document.header(file.block).metadata.get(FINDINGS, {})
    findings = [finding_text(one) for one in found.get("rows", ())] or None
    fields = {"version": version, "line_count": count, "content": content, "findings": findings}
    return FileReadResult(**await file_info(file, **fields))


class FileEditParams(FileParams):
    """A change of one place in a file: of a text that stands there once, or of lines."""

    new_text: str
    """Text that comes in its place; for lines whole ones, as in block.edit."""
    old_text: str | None = Field(default=None, min_length=1)
    """Text of the file, enough of it that it stands there once."""
    start_line: int | None = None
    """Without `old_text`: first line that goes, counted from 0."""
    end_line: int | None = None
    """Line after the last one that goes; `start_line` itself inserts."""
    base_version: int | None = None
    """The version of the file that `old_text` or the lines are of; now if absent."""
    dry_run: bool = False


class ChangedFile(Result):
    """A file that was changed, or would be."""

    path: str
    block_id: str | None = None
    """The block with its text; absent of a file that would be made."""
    name: str | None = None
    version: int
    """Version of the block; 0 of a file that would be made."""
    diff: str
    """The change, as a unified diff."""


@tool(
    "file.edit",
    needs=Permission.WRITE,
    errors=(
        *WRITING,
        ErrorCode.LINE_OUT_OF_RANGE,
        ErrorCode.CONTENT_MISMATCH,
        ErrorCode.STALE_VERSION,
    ),
)
async def edit_file(call: Call, params: FileEditParams) -> ChangedFile:
    """Change one place of a file; who has it open sees it at once.

    With `base_version` the place is found where it is by now, or the call fails with the lines
    that stand there instead. The file is saved as after any other edit.
    """
    file = await call.file(params.path)
    if params.old_text is not None:
        splices = await _plan_text(file, params.old_text, params.new_text, params.base_version)
    elif params.start_line is not None and params.end_line is not None:
        lines = LineEdit(params.start_line, params.end_line, params.new_text)
        splices = await plan_operations(
            file.context, file.block, None, [lines], params.base_version
        )
    else:
        raise invalid_params(
            "Say what is to be replaced: old_text, or start_line and end_line.", field="old_text"
        )
    planned = PlannedFile(params.path, file, splices)
    if params.dry_run:
        return planned.shown()
    (changed,) = await _carry_out(call, [planned], "edit")
    return changed


async def _plan_text(
    file: OpenFile, old: str, new: str, base_version: int | None
) -> list[TextSplice]:
    """The splices that put a text in the place of one that stands in a version once, or now."""
    context, block = file.context, file.block
    text = await text_at(context, block, base_version)
    if text.count(old) != 1:
        text, base_version = file.now().text, None
    places = _places(text, old)
    if len(places) != 1:
        raise await asyncio.to_thread(_no_place, file.path.shown, text, old, places)
    offset = await current_offset(
        *(context, block, None, places[0], len(old), base_version, "old_text is")
    )
    return [replace(one, offset=one.offset + offset) for one in plan_difference(old, new)]


def _places(text: str, wanted: str) -> list[int]:
    places, at = list[int](), text.find(wanted)
    while at >= 0:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places


def _no_place(path: str, text: str, old: str, places: Sequence[int]) -> AntiphonError:
    """Return the error for a text that does not stand in a file once."""
    if places:
        lines = join_names(str(text.count("\n", 0, at)) for at in places)
        return AntiphonError(
            ErrorCode.CONTENT_MISMATCH,
            f"old_text stands {len(places)} times in {quote(path)}, in the lines {lines}: give more"
            " of what stands around the one that you mean.",
        )
    every, wanted = split_lines(text), split_lines(old)
    longest = max(wanted, key=len, default="")
    alike = get_close_matches(longest, every, 1, _ALIKE)
    start = max(0, every.index(alike[0]) - wanted.index(longest)) if alike else 0
    shown = {"start_line": start, "lines": every[start : start + len(wanted)]} if alike else {}
    advice = "`lines` is what is most like it" if alike else "nothing in it is like it"
    return AntiphonError(
        ErrorCode.CONTENT_MISMATCH,
        f"old_text is not in {quote(path)}: {advice}. Read the file again, and give text that is"
        " there, every blank included.",
        **shown,
    )


class FilePatchParams(Params):
    """A unified diff of several files."""

    patch: str
    """As `diff -u` and git make it, with `---` and `+++` before the part of each file; `/dev/null`
    before one that is to be made."""
    dry_run: bool = False


class FilePatchResult(Result):
    """The files of the patch."""

    files: list[ChangedFile]
    """In the order of the patch."""


@tool("file.patch", needs=Permission.WRITE, errors=(*WRITING, ErrorCode.PATCH_FAILED))
async def patch_files(call: Call, params: FilePatchParams) -> FilePatchResult:
    """Apply a unified diff to several files, to all of them or to none; it may make new ones.

    Each part applies as in block.apply_patch.
    """
    size, limits, files = len(params.patch), call.kernel.limits, call.kernel.files
    what = f"The patch has {size} code points"
    check_limit(size, limits, "patch_code_points", what, "split it")
    parts, known = split_patch(params.patch), dict[str, OpenFile]()
    for part in parts:
        if part.creates:
            call.check_files(part.path)
            await files.check_free(part.path)
        else:
            known[part.path] = await call.file(part.path)
    edits = {part.path: [partial(plan_patch, patch=part)] for part in parts}
    planned = plan_files(edits, known)
    if params.dry_run:
        return FilePatchResult(files=[one.shown() for one in planned])
    new = [part.path for part in parts if part.creates]
    plan = partial(plan_files, edits)
    return FilePatchResult(files=await change_files(call, known, new, plan, "apply_patch"))


class PlannedFile(NamedTuple):
    """A file, and the change of it for which nothing has been done yet."""

    path: str
    file: OpenFile | None
    """None of one that is to be made."""
    splices: list[TextSplice]

    def shown(self, other: str | None = None) -> ChangedFile:
        """Return what would change; `other`: the text to compare with, if not the one it has."""
        file = self.file
        text, version = file.now() if file is not None else ("", 0)
        return ChangedFile(
            path=file.path.shown if file is not None else self.path,
            block_id=file.block if file is not None else None,
            name=file.context.block_name(file.block) if file is not None else None,
            version=version,
            diff=unified_diff(
                text if other is None else other, apply_splices(text, self.splices), self.path
            ),
        )


Edit = Callable[[str], list[TextSplice]]
"""Plans a change of a text."""


def plan_files(
    edits: Mapping[str, Sequence[Edit]], files: Mapping[str, OpenFile]
) -> list[PlannedFile]:
    """Plan the edits of each path, one after the other; a path without a file has no text yet.

    Raises:
        AntiphonError: what an edit raises, with the path in front.
    """
    planned: list[PlannedFile] = []
    for path, changes in edits.items():
        file, splices = files.get(path), list[TextSplice]()
        before = after = file.now().text if file is not None else ""
        try:
            for change in changes:
                splices = change(after)
                after = apply_splices(after, splices)
        except AntiphonError as error:
            error.message = f"{path}: {error.message}"
            raise
        if len(changes) > 1:
            splices = plan_difference(before, after)
        planned.append(PlannedFile(path, file, splices))
    return planned


async def change_files(
    call: Call,
    known: dict[str, OpenFile],
    new: Iterable[str],
    plan: Callable[[Mapping[str, OpenFile]], Sequence[PlannedFile]],
    operation: str,
) -> list[ChangedFile]:
    """Change files as planned, all of them or none; they are in the journal when it returns.

    Args:
        known: those that are there, by path; those that are made come into it.
        new: paths of those that are made.
        plan: called when all of them are there, with nothing between it and the changes.
    """
    call.kernel.contexts.guard.check_writer(call.actor)
    files, made = call.kernel.files, list[OpenFile]()
    try:
        for path in new:
            known[path] = await files.create(path)
            made.append(known[path])
        changed = await _carry_out(call, plan(known), operation)
    except AntiphonError:
        for file in made:
            if not file.disk_state.size:
                await files.delete(file.path.shown)
        raise
    for file in made:
        await file.save()
    return changed


async def _carry_out(
    call: Call, planned: Sequence[PlannedFile], operation: str
) -> list[ChangedFile]:
    """Make planned changes with nothing in between; they are in the journal when it returns."""
    files = [(one.file, one.splices) for one in planned if one.file is not None]
    for file, splices in files:
        reject_grown_text(file.context, file.block, splices)
    changed = [one.shown() for one in planned]
    written = [
        file.context.write(
            call.actor,
            operation,
            partial(file.context.document.splice_all, file.block, splices),
            blocks=[file.block],
            undo=UndoKind.CALL,
        )
        for file, splices in files
    ]
    for number, handle in enumerate(written):
        await handle.saved()
        version = handle.versions.get(str(changed[number].block_id), changed[number].version)
        changed[number] = changed[number].model_copy(update={"version": version})
    return changed
