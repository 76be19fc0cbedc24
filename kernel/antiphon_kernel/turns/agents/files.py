"""Files as agents read and write them: the live text of what is open, edits by the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from antiphon_kernel.files.disk_file import DiskKind, look
from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.text.lines import number_lines, split_lines
from antiphon_kernel.text.merge_edits import merge_texts
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.text.splice_diff import LINE, plan_difference
from antiphon_kernel.tools.file_edit import PlannedFile, change_files, edit_file
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, storage_failed
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.project_paths import ProjectPath, unusable
from antiphon_kernel.types.quoting import quote

EDIT: Final = "file_edit"
"""The tool of models whose permission writes of agents are under."""


def as_text(content: str) -> str:
    """Return a text of an agent's as texts are here."""
    return replace_half_characters(content.replace("\r\n", "\n"))


async def read_file(turn: AgentTurn, path: str, line: int | None, limit: int | None) -> str:
    """Return the text of a file as it is now, unsaved edits included.

    Args:
        path: absolute.
        line: the first one, counted from 1.
        limit: number of lines.

    Raises:
        AntiphonError: if there is no such file, or the agent may not see it.
    """
    kernel, found = turn.writer.kernel, await _find(turn, path)
    if kernel.files.is_known(found.shown):
        text = (await kernel.files.open(found.shown)).now().text
    else:  # what an agent only reads is no context yet
        text = (await kernel.files.read(found))[1].text
    turn.read[found.shown] = text
    if line is None and limit is None:
        return text
    lines = LINE.findall(text)[max((line or 1) - 1, 0) :]
    return "".join(lines if limit is None else lines[:limit])


async def write_file(turn: AgentTurn, path: str, content: str) -> None:
    """Change a file to `content`, as an edit of what the agent has read last; make it if need be.

    What people have written since stays. The file is saved at once: the agent may go on with
    programs of its own.

    Raises:
        AntiphonError: if it may not be written, or a person has said no; stale_version if people
            have changed the same lines since.
    """
    kernel, found, content = turn.writer.kernel, await _find(turn, path), as_text(content)
    name = found.shown
    is_there = (await asyncio.to_thread(look, found)).kind is not DiskKind.MISSING
    file = await kernel.files.open(name) if is_there else None
    base = ""
    if file is not None and file.announced is not None and file.announced.new == content:
        base = file.announced.old
    elif file is not None:  # it may have read the disk by itself
        base = turn.read[name] if name in turn.read else await file.disk_text()
    now = file.now().text if file is not None else ""
    shown = unified_diff(now, _merged(turn, name, base, now, content), name)
    request, blocks = turn.request(EDIT, {"path": name}, [name]), None
    if not await turn.may(request):
        blocks = await turn.open_call(request, shown)

    def plan(files: Mapping[str, OpenFile]) -> list[PlannedFile]:
        now = files[name].now().text
        text = _merged(turn, name, base, now, content)
        return [PlannedFile(name, files[name], plan_difference(now, text))]

    call = kernel.start_call(turn.writer.actor, edit_file)
    known = {} if file is None else {name: file}
    try:
        if (await _find(turn, path)).shown != name:
            raise unusable(path, "it has become another file meanwhile")
        await change_files(call, known, [name] if file is None else (), plan, "edit")
        turn.read[name] = content
        if problems := await kernel.files.save_open([name]):
            raise storage_failed(problems[0])
    except AntiphonError as error:
        if blocks is not None:
            await blocks.fail(error.message)
        raise
    if blocks is not None:
        await turn.writer.finish(blocks.result, Status.DONE)
        await blocks.end(Status.DONE)


_LINES_SHOWN: Final = 20
"""Lines of a file that a refusal shows at most."""


def _merged(turn: AgentTurn, path: str, base: str, now: str, content: str) -> str:
    """Return the text that a file gets: what the agent has made of `base`, and others since.

    Raises:
        AntiphonError: stale_version if that is not clear; the agent has read the file then.
    """
    merged = merge_texts(base, now, content)
    if merged.conflicts:
        turn.read[path] = now
        first = merged.conflicts[0].ours
        line = now.count("\n", 0, first.start) + 1
        shown = "\n".join(split_lines(first.text)[:_LINES_SHOWN])
        raise AntiphonError(
            ErrorCode.STALE_VERSION,
            f"Others have changed lines of {quote(path)} that you change, too, since you read it,"
            " so nothing was written. Read the file again, and write it once more. It now says"
            f" from line {line} on:\n{number_lines(shown, line)}",
        )
    return merged.text


async def _find(turn: AgentTurn, path: str) -> ProjectPath:
    """Return a file of the project that the agent may see; raises AntiphonError for others."""
    if not path.startswith("/"):
        raise invalid_params(f"{quote(path)} is not absolute: paths of ACP are.", field="path")
    kernel = turn.writer.kernel
    return await kernel.files.find_shown(path, turn.writer.actor.principal)
