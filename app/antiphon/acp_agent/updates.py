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
from antiphon_kernel.text.patch import PatchParser, split_patch
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import join_names, truncate

REST_SECONDS: Final = 1.0
"""How long nobody has edited told text before that is told; how often growing output is."""

SHOWN_OUTPUT: Final = 10_000
"""Code points of a result, its last ones, that are told while it grows."""

_AROUND: Final = 3
"""Unchanged lines that are told above and below an edit."""

_STATUSES: Final = {
    "pending": "pending",
    "running": "in_progress",
    "done": "completed",
    "error": "failed",
}

_KINDS: Final = {
    "shell": "execute",
    **dict.fromkeys(("read", "render", "layout", "blame", "history"), "read"),
    **dict.fromkeys(("search", "list"), "search"),
    **dict.fromkeys(("edit", "patch", "create", "append", "splice"), "edit"),
    "delete": "delete",
    "rename": "move",
    "move": "move",
}
"""Kinds of the protocol by the last word of a tool's name."""


class SessionUpdates:
    """Turns events of a subscription to a context into updates."""

    def __init__(self, project: Path) -> None:
        self.me = ""
        """Name of the person whose client it is."""
        self.blocks: dict[str, FollowedBlock] = {}
        self.own: set[str] = set()
        """Messages that the client has shown already."""
        self.answering: str | None = None
        """The one of them that is being answered."""
        self.model: str | None = None
        """Whoever answers messages that name nobody: its text needs no name."""
        self._project = project
        self._open: str | None = None
        """The block whose text is being told."""
        self._behind: dict[str, None] = {}
        """Blocks of which some text is not told yet."""
        self._edited: dict[str, None] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        """What was told last of each call."""
        self._results: dict[str, dict[str, None]] = {}
        """Results by call."""
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
        was_excluded = one.header.get("excluded")
        edited = one.take(event, rendered)
        kind, parent = one.header["kind"], str(one.header.get("parent_id"))
        if one.header.get("excluded"):
            return
        if kind == BlockKind.TOOL_CALL:
            yield from self._call(block)
        elif kind == BlockKind.TOOL_RESULT:
            self._results.setdefault(parent, {})[block] = None
            if one.over:
                yield from self._call(parent)
            else:
                self._due.setdefault(parent, now + REST_SECONDS)
        elif kind == BlockKind.FILE:
            if parent in self.blocks and self.blocks[parent].said and parent not in self.own:
                yield from self._files(parent)
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
        for block in (*(() if self._open is None else (self._open,)), *self._behind):
            one = self.blocks[block]
            if self._open not in (None, block) or block not in self._behind or one.waits:
                continue
            if one.rest:
                yield from self._say(block, one)
            self._open = None if one.over or one.structured or not one.said else block
            one.end_said |= one.over
            del self._behind[block]

    def _say(self, block: str, one: FollowedBlock) -> Iterator[SessionUpdate]:
        header, text = one.header, one.rest
        kind, author, is_first = header["kind"], header["username"], not one.said
        one.said += text
        one.shown = len(one.text)
        told: dict[str, Any] = {
            "message_id": block,
            "field_meta": {"antiphon": {"author": author, "block": header["name"]}},
        }
        content = text_block(text)
        if block in self.own or (kind == BlockKind.ERROR and header["parent_id"] == self.answering):
            return  # the client has it already, or gets it as the answer to its request
        if header["role"] == Role.USER:
            content.text = f"{author}: {text}" if is_first and author != self.me else text
            yield schema.UserMessageChunk(
                session_update="user_message_chunk", content=content, **told
            )
            yield from self._files(block)
        elif kind == BlockKind.THINKING:
            yield schema.AgentThoughtChunk(
                session_update="agent_thought_chunk", content=content, **told
            )
        else:
            named = f"Error: {text}" if kind == BlockKind.ERROR and is_first else text
            content.text = f"**{author}:** {named}" if is_first and author != self.model else named
            yield schema.AgentMessageChunk(
                session_update="agent_message_chunk", content=content, **told
            )

    def _files(self, message: str) -> Iterator[SessionUpdate]:
        """Tell the files of a message that was told."""
        for one in list(self.blocks.values()):
            header = one.header
            if header.get("parent_id") != message or header["kind"] != BlockKind.FILE:
                continue
            if not one.end_said and not header.get("excluded"):
                one.end_said = True
                path = Path(header.get("path") or header["name"])
                link = helpers.resource_link_block(path.name, (self._project / path).as_uri())
                yield schema.UserMessageChunk(session_update="user_message_chunk", content=link)

    def _edit(self, block: str, one: FollowedBlock) -> Iterator[SessionUpdate]:
        before, now, name = one.said, one.text[: one.shown], one.header["name"]
        if before == now or one.waits or one.header.get("excluded"):
            return
        one.said = now
        old, new = before.split("\n"), now.split("\n")
        changes = changed_ranges(old, new)
        above = max(0, changes[0].start - _AROUND)
        last = changes[-1]
        changed = (old[above : last.end + _AROUND], new[above : last.new_end + _AROUND])
        left, came = ("\n".join(lines) for lines in changed)
        yield helpers.start_tool_call(
            f"{block}@{one.version}",
            f"{join_names(one.editors) if one.editors else 'Somebody'} edited {name}",
            kind="edit",
            status="completed",
            content=[tool_diff_content(name, came, left)],
        )
        one.editors.clear()

    # Calls

    def _call(self, call: str) -> Iterator[SessionUpdate]:
        self._due.pop(call, None)
        one = self.blocks.get(call)
        if one is None or one.header.get("excluded"):
            return
        header, given = one.header, one.header.get("input") or {}
        name = str(header.get("tool_name") or "tool")
        path = given.get("path") or header.get("path")
        target = given.get("command") or path or given.get("block_id") or given.get("query")
        start = given.get("start_line")
        line = start + 1 if isinstance(start, int) else None
        place = (
            [] if path is None else [schema.ToolCallLocation(path=self._absolute(path), line=line)]
        )
        fields: dict[str, Any] = {
            "title": truncate(f"{name} {target}" if target else name),
            "kind": _KINDS.get(re.split(r"[._]", name)[-1], "other"),
            "status": "failed" if header.get("is_error") else _STATUSES[header["status"]],
            "raw_input": given,
            "locations": place,
            "content": [*self._diffs(one.text), *self._outputs(call)],
        }
        known = self.calls.get(call)
        self.calls[call] = fields
        if known is None:
            yield helpers.start_tool_call(call, **fields)
        elif changed := {key: value for key, value in fields.items() if value != known[key]}:
            yield helpers.update_tool_call(call, **changed)

    def _diffs(self, text: str) -> Iterator[Any]:
        """Read what the kernel writes into the block of a call that changes files."""
        if not text.startswith("--- "):
            return
        try:
            parts = split_patch(text)
        except AntiphonError:
            return
        for part in parts:
            lines = [line for hunk in PatchParser(part.patch).parse().hunks for line in hunk.lines]
            old = None if part.creates else "".join(one.text for one in lines if one.mark != "+")
            new = "".join(one.text for one in lines if one.mark != "-")
            yield tool_diff_content(self._absolute(part.path), new, old)

    def _outputs(self, call: str) -> Iterator[Any]:
        for block in self._results.get(call, ()):
            one = self.blocks[block]
            text = one.text if one.over else one.text[-SHOWN_OUTPUT:]
            if text and not one.header.get("excluded"):
                fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
                yield helpers.tool_content(text_block(f"{fence}\n{text.rstrip()}\n{fence}"))

    def _absolute(self, path: str) -> str:
        return str(self._project / path.removeprefix("file:"))
