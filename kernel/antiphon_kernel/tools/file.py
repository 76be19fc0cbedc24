"""Files of the project: opened as contexts, saved, compared, decided about, made and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from antiphon_kernel.files.disk_file import read_part
from antiphon_kernel.files.open_file import FileState, OpenFile
from antiphon_kernel.files.text_format import (
    Binary,
    Decoded,
    TextFormat,
    decode,
    decode_part,
    encode,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import NoParams, Params, Result, tool
from antiphon_kernel.text.language_answers import choices, hover_text, locations
from antiphon_kernel.text.lines import line_count, line_start
from antiphon_kernel.text.merge_edits import EditConflict, Resolution
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.tools._common import BlockResult, ConflictTexts, text_at, write
from antiphon_kernel.types.errors import ErrorCode, invalid_params
from antiphon_kernel.types.project_files import too_large
from antiphon_kernel.types.project_paths import ProjectPath
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import reject_long_text

_ERRORS: Final = (ErrorCode.TOO_LARGE, ErrorCode.CONTEXT_NOT_FOUND)


_PART: Final = 64_000
"""Bytes that a part of a file has at most."""


class FileParams(Params):
    """A file of the project."""

    path: str
    """Relative to the project's root; or the id of its context, whatever the path is by now."""


class FileInfo(BlockResult):
    """A file that is open, and how it stands to the disk. The block has its text."""

    path: str
    context_id: str
    label: str
    """Label of the context that the file is."""
    line_count: int
    """Lines of the text."""
    encoding: str
    """Encoding in which it is written."""
    dirty: bool
    """Whether it has text that is not on disk."""
    state: FileState
    """Why it is not written; empty if it is."""
    problem: str | None = None
    """More about the state."""
    mark: str | None = None
    """The two letters of `git status --short`; absent if it is as at HEAD, or without git."""


async def file_info(file: OpenFile, **fields: Any) -> dict[str, Any]:
    """Return what is told of a file as it is now; `fields` are added, or told instead."""
    await file.context.wait_persisted()
    now, dirty = file.now(), await file.is_dirty()
    return {
        "path": file.path.shown,
        "context_id": file.context.id,
        "label": file.context.label,
        "block_id": file.block,
        "name": file.context.block_name(file.block),
        "version": now.version,
        "line_count": line_count(now.text),
        "encoding": file.format.encoding,
        "dirty": dirty,
        "state": file.state,
        "problem": file.problem or None,
    } | fields


@tool("file.open", needs=Permission.READ, errors=_ERRORS)
async def open_file(call: Call, params: FileParams) -> FileInfo:
    """Open a file of the project as a context of its own, whose one block has its text.

    Every tool that takes a block takes `file:PATH`, too, and opens the file by that.
    """
    return FileInfo(**await file_info(await call.file(params.path)))


class FilePartParams(FileParams):
    """A file, and where a part of it begins."""

    start: int = Field(default=0, ge=0)
    """Byte of the file."""


class FilePartResult(Result):
    """Some lines of a file as they are on disk."""

    path: str
    size: int
    """Bytes of the file."""
    start: int
    """First byte of the part; less than was asked for if the file ends before that."""
    end: int
    """Byte after the last one: a line's end, unless the line is very long or the file's last."""
    text: str
    """Text of the part, in the encoding of the file's beginning; empty if it is no text."""
    problem: str | None = None
    """The reason why it is no text, as a sentence."""
    media_type: str | None = None
    """Media type that goes with its name."""


@tool("file.part", needs=Permission.READ)
async def part(call: Call, params: FilePartParams) -> FilePartResult:
    """Read a part of a file that is too large to be opened, or learn what it is if it is no text.

    It is read from disk, up to 64,000 bytes of whole lines; the file is not opened by that.
    """
    call.check_files(params.path)
    path = await call.kernel.files.find(params.path)
    call.kernel.files.check_shown(call.actor.principal, path.shown)
    state, head = await asyncio.to_thread(read_part, path, 0, _PART)
    start = min(params.start, state.size)
    state, data = await asyncio.to_thread(read_part, path, start, _PART)
    is_last = start + len(data) >= state.size
    found = await asyncio.to_thread(decode_part, data, head, is_last=is_last)
    problem = found.reason if isinstance(found, Binary) else None
    text, length = ("", len(data)) if isinstance(found, Binary) else found
    return FilePartResult(
        path=path.shown,
        size=state.size,
        start=start,
        end=start + length,
        text=text,
        problem=problem,
        media_type=guess_type(path.name)[0],
    )


class FileStatusResult(Result):
    """The files that are open."""

    files: list[FileInfo]
    """By their paths."""


@tool("file.status", needs=Permission.READ)
async def status(call: Call, params: NoParams) -> FileStatusResult:
    """List the files that are open: whether each is saved, and what git says of it."""
    files = sorted(call.kernel.files.opened(), key=lambda one: one.path.shown)
    paths = [one.path.shown for one in files]
    marks = await call.kernel.files.git.marks(paths) if paths else {}
    return FileStatusResult(
        files=[FileInfo(**await file_info(one, mark=marks.get(one.path.shown))) for one in files]
    )


class SaveParams(FileParams):
    """File to save."""

    anew: bool = False
    """Make the file again if it has been deleted on disk."""


class SaveResult(FileInfo):
    """The file as it is now."""

    written: bool
    """False if the disk had that text already."""


@tool("file.save", needs=Permission.WRITE, errors=_ERRORS)
async def save(call: Call, params: SaveParams) -> SaveResult:
    """Write a file to disk, after what other programs have written there has been merged into it.

    A file that was changed here and on disk in the same place is not written: see file.resolve.
    """
    file = await call.file(params.path)
    call.kernel.contexts.guard.check_writer(call.actor)
    written = await file.save(anew=params.anew)
    return SaveResult(**await file_info(file, written=written))


@tool("file.revert", needs=Permission.WRITE, errors=_ERRORS)
async def revert(call: Call, params: FileParams) -> FileInfo:
    """Give a file the text that is on disk; block.undo brings back what it had."""
    file = await call.file(params.path)
    await file.revert(call.actor)
    return FileInfo(**await file_info(file))


class Against(StrEnum):
    """Text that a file is compared with."""

    DISK = "disk"
    HEAD = "head"


class DiffParams(FileParams):
    """File, and with what it is compared."""

    against: Against = Against.DISK
    """The disk, or the last commit of git."""
    version: int | None = Field(default=None, ge=1)
    """Compare with this version of the block instead."""


class ConflictInfo(ConflictTexts):
    """A place that was changed here and on disk, each in its own way. Lines count from 0."""

    start: int
    """First line of it in the text here."""
    end: int
    """Line after the last one."""


class DiffResult(Result):
    """The difference from the other text to the one here."""

    path: str
    version: int
    """Version of the block that was compared."""
    diff: str
    """Unified, with three lines around each change; empty if there is none."""
    conflicts: list[ConflictInfo]
    """In the order of the text; only against the disk."""


@tool("file.diff", needs=Permission.READ, errors=_ERRORS)
async def diff(call: Call, params: DiffParams) -> DiffResult:
    """Compare a file with the disk, with the last commit, or with an earlier version of it.

    Against the disk it also names the conflicts, whose numbers file.resolve takes.
    """
    file = await call.file(params.path)
    await file.look()
    conflicts: Sequence[EditConflict] = ()
    if params.version is not None:
        other = await text_at(file.context, file.block, params.version)
    elif params.against is Against.HEAD:
        other = await head_text(call, file.path)
    else:
        other = await file.disk_text()
        conflicts = (await file.conflicts()).conflicts
    now = file.now()
    return DiffResult(
        path=file.path.shown,
        version=now.version,
        diff=unified_diff(other, now.text, file.path.shown),
        conflicts=[_conflict_info(one, now.text) for one in conflicts],
    )


def _conflict_info(conflict: EditConflict, text: str) -> ConflictInfo:
    """Return what is told of a conflict in a text."""
    start = text.count("\n", 0, conflict.ours.start)
    return ConflictInfo.of(conflict, start=start, end=start + line_count(conflict.ours.text))


async def head_text(call: Call, path: ProjectPath) -> str:
    """Return the text that a file has at HEAD; empty if it has none there."""
    data = await call.kernel.files.git.head(path)
    read = decode(data) if data is not None else None
    return read.text if isinstance(read, Decoded) else ""


class ResolveParams(FileParams):
    """A conflict, and what is to stand in its place."""

    conflict: int | None = Field(default=None, ge=0)
    """Its number as file.diff counts them, from 0; all if absent."""
    take: Resolution | None = None
    """The lines here, those on disk, or both."""
    text: str | None = None
    """Lines to write instead."""


class ResolveResult(FileInfo):
    """The file as it is now."""

    conflicts: int
    """How many conflicts are left."""


@tool("file.resolve", needs=Permission.WRITE, errors=_ERRORS)
async def resolve(call: Call, params: ResolveParams) -> ResolveResult:
    """Decide about a place that was changed here and on disk; it is one step of undo."""
    choice = params.take if params.text is None else params.text
    if choice is None or (params.take is not None and params.text is not None):
        raise invalid_params(
            "Say what is to stand in the place of the conflict: take (ours, theirs or both), or"
            " text, and not both of them.",
            field="take",
        )
    file = await call.file(params.path)
    count = len((await file.conflicts()).conflicts)
    if not count:
        raise invalid_params(
            f"The file {quote(file.path.shown)} has no conflict: there is nothing to decide.",
            field="path",
        )
    wanted = range(count) if params.conflict is None else (params.conflict,)
    left = await file.resolve(call.actor, dict.fromkeys(wanted, choice))
    return ResolveResult(**await file_info(file, conflicts=left))


class FileCreateParams(FileParams):
    """A new file."""

    content: str = ""
    """Its text."""


@tool("file.create", needs=Permission.WRITE, errors=_ERRORS)
async def create(call: Call, params: FileCreateParams) -> FileInfo:
    """Make a file on disk, with the folders that it needs, and open it."""
    call.check_files(params.path)
    reject_long_text(call.kernel.limits, len(params.content))
    size, limit = len(encode(params.content, TextFormat())), call.kernel.limits.file_bytes
    if size > limit:  # before there is a file
        raise too_large(params.path, size, limit, "file_bytes")
    call.kernel.contexts.guard.check_writer(call.actor)
    file = await call.kernel.files.create(params.path)
    splices = plan_difference(file.now().text, params.content)
    if splices:
        change = partial(file.context.document.splice_all, file.block, splices)
        await write(call, file.context, file.block, "edit", change)
        await file.save()
    return FileInfo(**await file_info(file))


class FileRenameParams(FileParams):
    """A file, and the path that it is to have."""

    to: str
    """Relative to the project's root; folders that are not there are made."""


@tool("file.rename", needs=Permission.WRITE, errors=_ERRORS)
async def rename(call: Call, params: FileRenameParams) -> FileInfo:
    """Give a file another name, or move it to another folder; its history goes with it."""
    call.check_files(params.to)
    await call.file(params.path)
    call.kernel.contexts.guard.check_writer(call.actor)
    file = await call.kernel.files.rename(params.path, params.to, call.actor)
    return FileInfo(**await file_info(file))


@tool("file.delete", needs=Permission.WRITE, errors=_ERRORS)
async def delete(call: Call, params: FileParams) -> FileInfo:
    """Delete a file from disk; `file.save` with `anew` brings it back.

    Its bytes are kept in the kernel's folder, its text and history in its context.
    """
    await call.file(params.path)
    call.kernel.contexts.guard.check_writer(call.actor)
    return FileInfo(**await file_info(await call.kernel.files.delete(params.path)))


class AskParams(FileParams):
    """A place in a file, and what is asked about it."""

    what: Literal["definition", "hover", "completion"]
    """The question: the definition of what is named there, what it is, or what can stand there."""
    line: int = Field(ge=0)
    """Counted from 0."""
    column: int = Field(ge=0)
    """Code points before the place in its line."""


class DefinitionPlace(Result):
    """A place where something is defined."""

    path: str
    """Relative to the project's root; absolute if it is outside, where nothing is opened."""
    line: int
    """Counted from 0."""
    outside: bool
    """Whether it is outside of the project."""


class CompletionItem(Result):
    """A text that can stand in the place of `begun`."""

    text: str
    """All of it, with what has been typed."""
    detail: str
    """Words about it; may be empty."""


class AskResult(Result):
    """The answer to what was asked; the other fields are absent."""

    places: list[DefinitionPlace] | None = None
    """The definition, if the server knows one."""
    text: str | None = None
    """Words about it; empty if the server knows none."""
    begun: str | None = None
    """The text before the place that the items complete."""
    items: list[CompletionItem] | None = None
    """The likeliest first."""


@tool("file.ask", needs=Permission.READ, errors=_ERRORS)
async def ask(call: Call, params: AskParams) -> AskResult:
    """Ask the language server of a file about a place in it.

    `language_servers` in config.toml names servers by the endings of files; without one it fails.
    """
    file, servers = await call.file(params.path), call.kernel.files.servers
    asked = file.now().text
    answer, *line = await servers.ask(file, params.what, params.line, params.column)
    try:
        if params.what == "hover":
            return AskResult(text=hover_text(answer))
        if params.what == "completion":
            begun, found = choices(answer, *line)
            return AskResult(begun=begun, items=[CompletionItem(**one._asdict()) for one in found])
        return AskResult(places=[_place(file, asked, *one) for one in locations(answer)])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise invalid_params(
            f"The language server of {quote(params.path)} has sent an answer that is none:"
            f" {error}. See to the command in config.toml."
        ) from error


def _place(file: OpenFile, asked: str, place: Path, line: int) -> DefinitionPlace:
    """Return a place; in the file itself, which others may have changed, where it is now."""
    if place == file.path.place:
        now = file.now().text
        offset = line_start(asked, min(line, line_count(asked)))
        offset = shift_through(offset, plan_difference(asked, now), stick="right")
        line = now.count("\n", 0, offset)
    project = Path(file.path.project)
    is_inside = place.is_relative_to(project)
    path = place.relative_to(project).as_posix() if is_inside else str(place)
    return DefinitionPlace(path=path, line=line, outside=not is_inside)


class FileListParams(Params):
    """Part of the files of the project."""

    glob: str | None = None
    """Only paths that match: `*` within a name, `**` over folders, `{a,b}` for either; without a
    slash it is a name in any folder."""
    after: str | None = None
    """Go on behind this path: the `next_path` of the answer before."""
    limit: int = Field(default=1_000, ge=1, le=10_000)
    """Paths in one answer."""
    changed: bool = False
    """Only files that differ from HEAD, or that git does not know yet."""


class FileListResult(Result):
    """Paths of the project, sorted."""

    paths: list[str]
    """Relative to the root; those that git ignores are left out."""
    next_path: str | None = None
    """Give it as `after` for those that follow."""
    marks: dict[str, str] | None = None
    """Of each of the `changed`, by path, the two letters of `git status --short`."""


@tool("file.list", needs=Permission.READ)
async def list_files(call: Call, params: FileListParams) -> FileListResult:
    """List the files of the project."""
    call.check_files("")
    found = await call.kernel.files.listed(params.glob, call.actor.principal)
    marks = await call.kernel.files.git.marks() if params.changed else None
    behind = [
        one
        for one in found
        if (params.after is None or one > params.after) and (marks is None or one in marks)
    ]
    paths = behind[: params.limit]
    return FileListResult(
        paths=paths,
        next_path=paths[-1] if len(behind) > len(paths) else None,
        marks=None if marks is None else {one: marks[one] for one in paths},
    )
