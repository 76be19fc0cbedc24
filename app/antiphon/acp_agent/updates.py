"""Blocks as updates of a session, in an order in which a client that only appends can show them.

Text that comes to the end of a block follows at once; other texts wait until that block is over.
What is changed inside text that was told is told as an edit, when the editing has come to rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from acp import helpers, schema
from acp.helpers import SessionUpdate, text_block, tool_diff_content

from antiphon.followed_block import FollowedBlock
from antiphon_kernel.text.patch import MalformedPatch, PatchParser, split_patch
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.types.block_metadata import AGENT_CALL, QUESTION, is_asked
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import join_names, truncate

REST_SECONDS: Final = 1.0
"""How long nobody has edited told text before that is told; how often growing output is."""

_GROWING: Final = 10_000
"""Code points of a result, its last ones, that are told while it grows."""

_AROUND: Final = 3
"""Unchanged lines that are told above and below an edit."""

_CHUNKS: Final[Mapping[str, Any]] = {
    "user_message_chunk": schema.UserMessageChunk,
    "agent_thought_chunk": schema.AgentThoughtChunk,
    "agent_message_chunk": schema.AgentMessageChunk,
}

_STATUSES: Final = {"pending": "pending", "running": "in_progress", "done": "completed"}

_KINDS: Final = {
    "shell": "execute",
    **dict.fromkeys(("read", "render", "layout", "blame", "history"), "read"),
    **dict.fromkeys(("search", "list"), "search"),
    **dict.fromkeys(("edit", "patch", "create", "append", "splice"), "edit"),
    "delete": "delete",
    "rename": "move",
    "move": "move",
}
"""Kinds of calls by the last word of a tool's name."""

_STEP: Final = re.compile(r"- \[([ x])\] (.*?)( \(in progress\))?")
"""A step of an agent's plan, as its list is rendered."""


class SessionUpdates:
    """Turns events of a subscription to a context into updates."""

    def __init__(self, project: Path) -> None:
        self.me = ""
        """Name of the person whose client it is."""
        self.model: str | None = None
        """Name of the model whose text needs no name."""
        self.blocks: dict[str, FollowedBlock] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        """The fields that were told last of each call."""
        self.own: set[str] = set()
        """Messages that the client shows by itself."""
        self._project = project
        self._open: str | None = None
        """The block whose text is being told."""
        self._behind: dict[str, None] = {}
        """Blocks of which some text is not told yet."""
        self._edited: dict[str, None] = {}
        self._below: dict[str, dict[str, None]] = {}
        """Results by call, files by message."""
        self._speaker: str | None = None
        """Author of the text that was told last, if it was no message."""
        self._plan: list[schema.PlanEntry] = []
        """The plan that was told last."""
        self._due: dict[str, float] = {}
        """Calls with output that grows, and when that is told."""

    def take(
        self, event: Mapping[str, Any], now: float, rendered: str | None = None
    ) -> Iterator[SessionUpdate]:
        """Tell an event of `block.subscribe`.

        Args:
            now: seconds on any clock.
            rendered: the content as text, where it is not one text by itself.
        """
        block = event["block_id"]
        one = self.blocks.get(block)
        if one is None:
            one = self.blocks[block] = FollowedBlock(event["header"])
        if event["version"] <= one.version:
            return
        was_excluded = _is_excluded(one)
        edited = one.take(event, rendered)
        kind, parent = one.header["kind"], str(one.header.get("parent_id"))
        if kind in (BlockKind.TOOL_RESULT, BlockKind.FILE):
            self._below.setdefault(parent, {})[block] = None
        if kind == BlockKind.TOOL_CALL:
            yield from self._call(block)
        elif kind == BlockKind.TOOL_RESULT:
            if one.over:
                yield from self._call(parent)
            else:
                self._due.setdefault(parent, now + REST_SECONDS)
        elif kind == BlockKind.FILE:
            if parent in self.blocks and self.blocks[parent].said:
                yield from self._files(parent)
        elif steps := _steps(one):
            if steps != self._plan:
                self._plan = steps
                yield helpers.update_plan(steps)
        else:
            if edited or was_excluded or (one.end_said and one.rest):
                one.shown = len(one.text) if one.end_said else one.shown
                one.edit(event, now)
                self._edited[block] = None
            self._behind[block] = None
            yield from self._grow()

    def flush(self, now: float = math.inf) -> Iterator[SessionUpdate]:
        """Tell what has come to rest by `now`."""
        for block in [one for one in self._edited if self.blocks[one].edited + REST_SECONDS <= now]:
            del self._edited[block]
            yield from self._edit(block, self.blocks[block])
        for call in [one for one, due in self._due.items() if due <= now]:
            yield from self._call(call)

    def next_flush_at(self) -> float:
        """Return the time at which `flush` has something to tell, in the seconds of `take`."""
        edited = (self.blocks[one].edited + REST_SECONDS for one in self._edited)
        return min((*edited, *self._due.values()), default=math.inf)

    # Texts

    def _grow(self) -> Iterator[SessionUpdate]:
        if self._open is not None and _is_excluded(self.blocks[self._open]):
            self._open = None
        for block in (*(() if self._open is None else (self._open,)), *self._behind):
            one = self.blocks[block]
            is_next = self._open in (None, block) and block in self._behind
            if not is_next or one.waits or _is_excluded(one):
                continue
            if one.rest:
                yield from self._say(block, one)
            self._open = None if one.over or one.structured or not one.said else block
            one.end_said |= one.over
            del self._behind[block]

    def _say(self, block: str, one: FollowedBlock) -> Iterator[SessionUpdate]:
        header, text, is_first = one.header, one.rest, not one.said
        kind, author = header["kind"], header["username"]
        one.said += text
        one.shown = len(one.text)
        if block in self.own or (header["role"] == Role.SYSTEM and kind == BlockKind.TEXT):
            return  # the client has it already, or it is for models
        if header["role"] == Role.USER:
            self._speaker = None
            text = f"{author}: {text}" if is_first and author != self.me else text
            yield _chunk("user_message_chunk", text_block(text), block, header)
            yield from self._files(block)
        elif kind == BlockKind.THINKING:
            yield _chunk("agent_thought_chunk", text_block(text), block, header)
        else:
            text = f"Error: {text}" if kind == BlockKind.ERROR and is_first else text
            text = text if author == (self._speaker or self.model) else f"**{author}:** {text}"
            self._speaker = author
            yield _chunk("agent_message_chunk", text_block(text), block, header)

    def _files(self, message: str) -> Iterator[SessionUpdate]:
        """Tell the files of a message that was told."""
        for block in self._below.get(message, ()) if message not in self.own else ():
            one = self.blocks[block]
            if not one.end_said and not _is_excluded(one):
                one.end_said = True
                path = Path(one.header.get("path") or one.header["name"])
                link = helpers.resource_link_block(path.name, (self._project / path).as_uri())
                yield _chunk("user_message_chunk", link, block, one.header)

    def _edit(self, block: str, one: FollowedBlock) -> Iterator[SessionUpdate]:
        before, now, name = one.said, one.text[: one.shown], one.header["name"]
        if before == now or one.waits or _is_excluded(one):
            return
        one.said = now
        editors = join_names(one.editors) if one.editors else "Somebody"
        one.editors.clear()
        old, new = before.split("\n"), now.split("\n")
        changes = changed_ranges(old, new)
        above, last = max(0, changes[0].start - _AROUND), changes[-1]
        left = "\n".join(old[above : last.end + _AROUND])
        came = "\n".join(new[above : last.new_end + _AROUND])
        yield helpers.start_tool_call(
            f"{block}@{one.version}",
            f"{editors} edited {name}",
            kind="edit",
            status="completed",
            content=[tool_diff_content(name, came, left)],
        )

    # Calls

    def _call(self, call: str) -> Iterator[SessionUpdate]:
        self._due.pop(call, None)
        one = self.blocks.get(call)
        if one is None or _is_excluded(one):
            return
        header, given = one.header, one.header.get("input") or {}
        about = header.get("metadata", {}).get(AGENT_CALL, {})
        name, path = str(header.get("tool_name") or "tool"), given.get("path")
        target = given.get("command") or path or given.get("block_id") or given.get("query") or ""
        places = about.get("locations") or [{"path": path, "line": given.get("start_line")}]
        status = "failed" if header.get("is_error") else _STATUSES.get(header["status"], "failed")
        fields: dict[str, Any] = {
            "title": about.get("title") or truncate(f"{name} {target}".strip()),
            "kind": about.get("kind") or _KINDS.get(re.split(r"[._]", name)[-1], "other"),
            "status": status,
            "raw_input": given,
            "locations": [
                schema.ToolCallLocation(
                    path=self._absolute(at["path"]),
                    line=None if at.get("line") is None else at["line"] + 1,
                )
                for at in places
                if at["path"] is not None
            ],
            "content": [*_questions(header), *self._diffs(one.text), *self._outputs(call)],
        }
        known, self.calls[call] = self.calls.get(call), fields
        if known is None:
            yield helpers.start_tool_call(call, **fields)
        elif changed := {key: value for key, value in fields.items() if value != known[key]}:
            yield helpers.update_tool_call(call, **changed)

    def _diffs(self, text: str) -> Iterator[Any]:
        """Read what the kernel writes into the block of a call that changes files."""
        if not text.startswith("--- "):
            return
        try:
            parts = [(one, PatchParser(one.patch).parse()) for one in split_patch(text)]
        except (AntiphonError, MalformedPatch):
            return
        for part, patch in parts:
            lines = [line for hunk in patch.hunks for line in hunk.lines]
            old = None if part.creates else "".join(one.text for one in lines if one.mark != "+")
            new = "".join(one.text for one in lines if one.mark != "-")
            yield tool_diff_content(self._absolute(part.path), new, old)

    def _outputs(self, call: str) -> Iterator[Any]:
        for one in (self.blocks[block] for block in self._below.get(call, ())):
            text = one.text if one.over else one.text[-_GROWING:]
            if text and not _is_excluded(one):
                fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
                yield helpers.tool_content(text_block(f"{fence}\n{text.rstrip()}\n{fence}"))

    def _absolute(self, path: str) -> str:
        return str(self._project / path.removeprefix("file:"))


def _is_excluded(one: FollowedBlock) -> bool:
    return one.header.get("excluded") is True


def _questions(header: Mapping[str, Any]) -> Iterator[Any]:
    """Tell what a server asks people, as long as it waits for an answer."""
    if is_asked(header):
        asked = header["metadata"][QUESTION]
        said = f"{asked['server']} asks: {asked['message']} {asked.get('url', '')}".strip()
        yield helpers.tool_content(text_block(f"{said} It is answered in antiphon."))


def _chunk(kind: str, content: Any, block: str, header: Mapping[str, Any]) -> SessionUpdate:
    meta = {"antiphon": {"author": header["username"], "block": header["name"]}}
    chunk: SessionUpdate = _CHUNKS[kind](
        session_update=kind, content=content, message_id=block, field_meta=meta
    )
    return chunk


def _steps(one: FollowedBlock) -> list[schema.PlanEntry]:
    """Return the steps of an agent's plan; none if a block is something else."""
    lines = one.text.splitlines() if one.structured and one.header["role"] == Role.MODEL else []
    found = [_STEP.fullmatch(line) for line in lines]
    if _is_excluded(one) or not all(found):
        return []
    return [
        helpers.plan_entry(
            step[2],
            status="completed" if step[1] == "x" else "in_progress" if step[3] else "pending",
        )
        for step in found
        if step is not None
    ]
