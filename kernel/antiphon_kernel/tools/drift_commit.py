"""`drift.commit`: blocks of a conversation as edits of files, and a commit of git with these."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

from pydantic import Field

from antiphon_kernel.access import check_shell
from antiphon_kernel.contexts.lineage.drifting import Changes, write_drift
from antiphon_kernel.document.rendering import render
from antiphon_kernel.files.disk_file import DiskKind, look
from antiphon_kernel.files.file_contexts import FilePlace
from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import DriftRow
from antiphon_kernel.text.edits import LineEdit, plan_edit
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.text.patch import plan_patch, split_patch
from antiphon_kernel.tools._common import block_in
from antiphon_kernel.tools.drift import DriftResult
from antiphon_kernel.tools.file import head_text
from antiphon_kernel.tools.file_edit import ChangedFile, Edit, PlannedFile, change_files, plan_files
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import ContextKind, DriftKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.project_paths import ProjectPath
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit

_DIFF: Final = re.compile(r"\s*(?:diff --git |--- .*\n\+\+\+ )")
_DIFF_FENCES: Final = (["diff"], ["patch"])


class DriftCommitParams(Params):
    """Blocks, and where their texts go."""

    blocks: list[str] = Field(min_length=1)
    """Blocks of one conversation. Unified diffs in them, which are the whole text or fenced as
    `diff`, are applied as by file.patch; the text of any other block goes to `path`."""
    path: str | None = None
    """File for the other texts; it is made if it is not there. They come behind what it has, each
    set apart by a blank line; with lines (`notes.md#L10-L20`) in the place of these."""
    message: str | None = Field(None, max_length=10_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
    """Save the files, and make one commit of git with this message, whose last line names the
    context and its version. For owners: hooks run."""
    difference: str | None = None
    """Digest of the difference, which a call without it has answered."""


class DriftCommitResult(Result):
    """The difference, and what has become of it."""

    difference: str
    """Digest of the difference; a call with it makes the change."""
    files: list[ChangedFile]
    """Each with its difference: with a `message` from HEAD, for that is committed; else from the
    text that it has."""
    commit: str | None = None
    """Id of the commit of git."""
    outcome: str | None = None
    """The reason why git has committed nothing; the files are changed all the same."""
    drift: DriftResult | None = None
    """The drift; absent as long as nothing is changed."""


class _Target(NamedTuple):
    """A file that is changed, and how."""

    place: ProjectPath
    is_new: bool
    head: str | None
    """Text to compare with; the text that it has if None."""
    edits: list[Edit]


@tool(
    "drift.commit",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.TOO_LARGE,
        ErrorCode.LINE_OUT_OF_RANGE,
        ErrorCode.PATCH_FAILED,
        ErrorCode.STALE_VERSION,
    ),
)
async def commit(call: Call, params: DriftCommitParams) -> DriftCommitResult:
    """Write what blocks of a conversation say into files of the project; commit them if asked.

    A call without `difference` changes nothing and answers what it would change. A call with the
    digest from that answer makes the change if it is still the same: all files are changed, or
    none. In a file it is an edit like any other, by whoever calls, and undone there; the
    conversation gets a block that says what was done. If git refuses, the files stay changed.
    """
    if params.message is not None:
        check_shell(call.actor.principal, call.role)
    context, first = await call.block(params.blocks[0])
    if context.row.kind is not ContextKind.CONVERSATION:
        raise invalid_params(
            "Blocks of a conversation are committed, and this is the text of a file: change files"
            " with file.edit.",
            field="blocks",
        )
    blocks = [first, *[await block_in(call, context, one) for one in params.blocks[1:]]]
    version = context.seq
    texts = {one: render(context.document, one) for one in blocks}
    size = sum(map(len, texts.values()))
    what = f"The blocks have {size} code points"
    check_limit(size, context.limits, "patch_code_points", what, "commit fewer at once")
    targets = await _targets(call, params, await asyncio.to_thread(_edits, texts, params.path))
    known = {path: await call.file(path) for path, one in targets.items() if not one.is_new}
    edits = {path: one.edits for path, one in targets.items()}

    def shown(planned: Sequence[PlannedFile]) -> list[ChangedFile]:
        return [one.shown(targets[one.path].head) for one in planned]

    files = shown(plan_files(edits, known))
    whole = "".join(one.diff for one in files)
    if not whole:
        raise invalid_params("The files have these texts already: there is nothing to commit.")
    what = f"The difference has {len(whole)} code points"
    check_limit(len(whole), context.limits, "patch_code_points", what, "commit fewer blocks")
    if params.difference is None:
        return DriftCommitResult(difference=_digest(files), files=files)

    def plan(opened: Mapping[str, OpenFile]) -> list[PlannedFile]:
        planned = plan_files(edits, opened)
        found = shown(planned)
        if (now := _digest(found)) != params.difference:
            raise AntiphonError(
                ErrorCode.STALE_VERSION,
                "The difference is another one than was shown, so nothing was changed: look at the"
                " new one, and call again with its digest.",
                difference=now,
                diff="".join(one.diff for one in found),
            )
        return planned

    new = [path for path, one in targets.items() if one.is_new]
    changed = await change_files(call, known, new, plan, "drift")
    kernel, made, outcome = call.kernel, None, None
    try:
        if params.message is not None:
            from_here = f"From antiphon context {context.label}, version {version}"
            message = f"{params.message.rstrip()}\n\n{from_here}"
            for file in known.values():
                await file.save()
            made = await kernel.files.git.commit([one.path for one in known.values()], message)
    except AntiphonError as error:
        outcome = f"The files are changed, but there is no commit: {error.message}"
    number, who, time = context.row.number, call.actor.principal, kernel.clock.now_ms()
    about = kernel.ids.uuid7(), DriftKind.COMMIT, number, version, number, who.id, time
    origin = (context.id, context.label, version, who.username, tuple(blocks))
    said = f"Commit {made}" if made is not None else outcome
    try:
        written = write_drift(
            *(context, call.actor, DriftRow(*about), DriftOrigin(about[0], *origin)),
            *(kernel.members.find, time),
            Changes(_fenced(whole, said)),
        )
    except AntiphonError as error:
        done = said or "The files are changed"
        error.message = f"{done}, but the conversation does not say so: {error.message}"
        raise
    kernel.drifts.know(written.row)
    await written.handle.saved()
    return DriftCommitResult(
        difference=params.difference,
        files=[
            now.model_copy(update={"diff": before.diff})
            for now, before in zip(changed, files, strict=True)
        ],
        commit=made,
        outcome=outcome,
        drift=DriftResult.of(kernel, written.row),
    )


def _edits(texts: Mapping[str, str], path: str | None) -> list[tuple[str, Edit]]:
    """Return the changes that texts of blocks are, each with the path of its file."""
    place = FilePlace.parse(path) if path is not None else None
    patches, others = list[str](), list[str]()
    for block, text in texts.items():
        found = [text] if _DIFF.match(text) else _diffs(text)
        patches += found
        if found:
            continue
        if place is None or not text.strip():
            what = "has no unified diff" if text.strip() else "is empty"
            raise invalid_params(
                f"Block {block} {what}: give path, the file that its text goes to, or leave the"
                " block out.",
                field="path",
            )
        others.append(text)
    edits: list[tuple[str, Edit]] = []
    if place is not None and others:
        edits.append((place.path, partial(_plan_texts, others, place.lines)))
    for part in (part for patch in patches for part in split_patch(patch)):
        edits.append((part.path, partial(plan_patch, patch=part)))
    return edits


def _diffs(text: str) -> list[str]:
    from markdown_it import MarkdownIt  # takes a while, and most kernels commit nothing

    fences = (one for one in MarkdownIt("commonmark").parse(text) if one.type == "fence")
    return [one.content for one in fences if one.info.split()[:1] in _DIFF_FENCES]


def _plan_texts(texts: Sequence[str], lines: range | None, before: str) -> list[TextSplice]:
    """Return the change that brings texts to the end, or in the place of lines."""
    said = "\n".join(one if one.endswith("\n") else f"{one}\n" for one in texts)
    if lines is not None:
        return plan_edit(before, [LineEdit(lines.start, lines.stop, said)])
    apart = "\n" if before and not before.endswith("\n\n") else ""
    end = line_count(before)
    return plan_edit(before, [LineEdit(end, end, apart + said)])


async def _targets(
    call: Call, params: DriftCommitParams, edits: Sequence[tuple[str, Edit]]
) -> dict[str, _Target]:
    """Return the files that are changed, by path, if the caller may change them."""
    files, targets = call.kernel.files, dict[str, _Target]()
    is_committed = params.message is not None and await files.git.folder() is not None
    for named, edit in edits:
        call.check_files(named)
        place = await files.find(named)
        files.check_shown(call.actor.principal, place.shown)
        if place.shown not in targets:
            is_new = (await asyncio.to_thread(look, place)).kind is DiskKind.MISSING
            head = await head_text(call, place) if is_committed else None
            targets[place.shown] = _Target(place, is_new, head, [])
        targets[place.shown].edits.append(edit)
    return targets


def _digest(files: Sequence[ChangedFile]) -> str:
    return sha256("".join(one.diff for one in files).encode()).hexdigest()


def _fenced(difference: str, about: str | None) -> str:
    fence = "`" * max([3, *(len(one) + 1 for one in re.findall("`+", difference))])
    return f"{fence}diff\n{difference}{fence}\n" + (f"\n{about}\n" if about else "")
