"""Blocks as updates of a session, in an order in which a client that only appends can show them.

Text that comes to the end of a block follows at once; other texts wait until that block is over.
What is changed inside text that was told is told as an edit, when the editing has come to rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from acp import helpers, schema
from acp.helpers import SessionUpdate, text_block, tool_diff_content

from antiphon.followed_block import REST_SECONDS, FollowedBlock
from antiphon_kernel.text.patch import split_patch
from antiphon_kernel.types.block_metadata import AGENT_CALL, QUESTION, is_asked
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import join_names, truncate

_GROWING: Final = 10_000
"""Code points of a result, its last ones, that are told while it grows."""

_STATUSES: Final = {"pending": "pending", "running": "in_progress", "done": "completed"}

_KINDS: Final = {
    "shell": "execute",
    "read": "read",
    **dict.fromkeys(("search", "list"), "search"),
    **dict.fromkeys(("edit", "patch", "create", "append", "splice"), "edit"),
}
"""Kinds of calls by the last word of a tool's name."""


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
        self.due: dict[str, float] = {}
        """Edited texts, and calls with output that grows, and when that is told."""
        self._project = project
        self._open: str | None = None
        """The block whose text is being told."""
        self._behind: dict[str, None] = {}
        """Blocks of which some text is not told yet."""
        self._results: dict[str, dict[str, None]] = {}
        """By call."""
        self._speaker: str | None = None
        """Author of the text that was told last, if it was no message."""

    def take(
        self, event: Mapping[str, Any], now: float, rendered: str | None = None
    ) -> Iterator[SessionUpdate]:
        """Tell an event of `block.subscribe`; `rendered` is a content that is not one text."""
        block = event["block_id"]
        one = self.blocks.setdefault(block, FollowedBlock(event.get("header", {})))
        if event["version"] <= one.version:
            return
        if one.header["kind"] == BlockKind.FILE:
            rendered = one.header.get("path") or one.header["name"]
        edited = one.take(event, rendered)
        kind, parent = one.header["kind"], str(one.header.get("parent_id"))
        if kind == BlockKind.TOOL_CALL:
            yield from self._call(block)
        elif kind == BlockKind.TOOL_RESULT:
            self._results.setdefault(parent, {})[block] = None
            if one.over or parent not in self.blocks:
                yield from self._call(parent)
            else:
                self.due.setdefault(parent, now + REST_SECONDS)
        else:
            if one.end_said and one.rest:
                one.shown, edited = len(one.text), True
            if edited:
                one.edit(event)
                self.due[block] = now + REST_SECONDS
            self._behind[block] = None
            yield from self._grow()

    def flush(self, now: float = math.inf) -> Iterator[SessionUpdate]:
        """Tell what has come to rest by `now`."""
        for block in [one for one, due in self.due.items() if due <= now]:
            one = self.blocks[block]
            if not self._is_hidden(one):
                del self.due[block]
                is_call = one.header["kind"] == BlockKind.TOOL_CALL
                yield from self._call(block) if is_call else self._edit(block, one)

    def _is_hidden(self, one: FollowedBlock) -> bool:
        message = self.blocks.get(str(one.header.get("parent_id")))
        is_ahead = one.header["kind"] == BlockKind.FILE and not (message and message.said)
        return one.waits or is_ahead or one.header.get("excluded") is True

    # Texts

    def _grow(self) -> Iterator[SessionUpdate]:
        for block in sorted(self._behind, key=lambda one: one != self._open):
            one = self.blocks[block]
            if self._open == block:
                self._open = None
            if self._open is not None or self._is_hidden(one):
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
        is_note = header["role"] == Role.SYSTEM and kind == BlockKind.TEXT
        if is_note or (header.get("parent_id") if kind == BlockKind.FILE else block) in self.own:
            return  # the client has it already, or it is for models
        tell: Callable[[Any], Any] = helpers.update_agent_message
        content: Any = None
        if kind == BlockKind.FILE:
            tell = helpers.update_user_message
            content = helpers.resource_link_block(Path(text).name, self._absolute(text).as_uri())
        elif header["role"] == Role.USER:
            tell, self._speaker = helpers.update_user_message, None
            text = f"{author}: {text}" if is_first and author != self.me else text
        elif kind == BlockKind.THINKING:
            tell = helpers.update_agent_thought
        else:
            text = f"Error: {text}" if kind == BlockKind.ERROR and is_first else text
            text = text if author == (self._speaker or self.model) else f"**{author}:** {text}"
            self._speaker = author
        chunk = tell(content or text_block(text))
        chunk.message_id = block
        chunk.field_meta = {"antiphon": {"author": author, "block": header["name"]}}
        yield chunk

    def _edit(self, block: str, one: FollowedBlock) -> Iterator[SessionUpdate]:
        before, one.said, name = one.said, one.text[: one.shown], one.header["name"]
        editors = join_names(one.editors) if one.editors else "Somebody"
        one.editors.clear()
        if before != one.said:
            yield helpers.start_tool_call(
                f"{block}@{one.version}",
                f"{editors} edited {name}",
                kind="edit",
                status="completed",
                content=[tool_diff_content(name, one.said, before)],
            )

    # Calls

    def _call(self, call: str) -> Iterator[SessionUpdate]:
        self.due.pop(call, None)
        one = self.blocks.get(call)
        if one is None or self._is_hidden(one):
            return
        header, given = one.header, one.header.get("input") or {}
        about = header.get("metadata", {}).get(AGENT_CALL, {})
        name, path = str(header.get("tool_name") or "tool"), given.get("path")
        target = given.get("command") or path or given.get("block_id") or given.get("query") or ""
        places = [{"path": path, "line": given.get("start_line")}] if path else []
        status = "failed" if header.get("is_error") else _STATUSES.get(header["status"], "failed")
        fields: dict[str, Any] = {
            "title": about.get("title") or truncate(f"{name} {target}".strip()),
            "kind": about.get("kind") or _KINDS.get(re.split(r"[._]", name)[-1], "other"),
            "status": status,
            "raw_input": given,
            "locations": [
                schema.ToolCallLocation(
                    path=str(self._absolute(at["path"])),
                    line=None if at.get("line") is None else at["line"] + 1,
                )
                for at in about.get("locations") or places
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
            parts = split_patch(text)
        except AntiphonError:
            return
        for part in parts:
            lines = [line for hunk in part.hunks for line in hunk.lines]
            old = None if part.creates else "".join(one.text for one in lines if one.mark != "+")
            new = "".join(one.text for one in lines if one.mark != "-")
            yield tool_diff_content(str(self._absolute(part.path)), new, old)

    def _outputs(self, call: str) -> Iterator[Any]:
        for one in (self.blocks[block] for block in self._results.get(call, ())):
            text = one.text if one.over else one.text[-_GROWING:]
            if text and not self._is_hidden(one):
                fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
                yield helpers.tool_content(text_block(f"{fence}\n{text.rstrip()}\n{fence}"))

    def _absolute(self, path: str) -> Path:
        return self._project / path.removeprefix("file:")


def _questions(header: Mapping[str, Any]) -> Iterator[Any]:
    """Tell what a server asks people, as long as it waits for an answer."""
    if is_asked(header):
        asked = header["metadata"][QUESTION]
        said = f"{asked['server']} asks: {asked['message']} {asked.get('url', '')}".strip()
        yield helpers.tool_content(text_block(f"{said} It is answered in antiphon."))
