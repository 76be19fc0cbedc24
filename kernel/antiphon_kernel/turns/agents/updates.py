"""Updates of an agent's turn: text, reasoning, calls and plan, written into blocks as they come."""

from __future__ import annotations

import json
import logging
import os
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from acp import schema

from antiphon_kernel.document.schema import ListSchema, TextSchema, encode_schema
from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.files import EDIT
from antiphon_kernel.turns.agents.terminals import AgentTerminals
from antiphon_kernel.turns.block_writer import (
    SHELL,
    CallBlocks,
    KeptOutput,
    begin_call,
    open_result,
)
from antiphon_kernel.turns.turn import TurnFailed, one_line
from antiphon_kernel.types.block_metadata import AGENT_CALL, USAGE
from antiphon_kernel.types.constants import MAX_TOKENS, REFUSED
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_log = logging.getLogger(__name__)

_PLAN: Final = json.loads(encode_schema(ListSchema(item_schema=TextSchema())))
_PLAN_MARKS: Final = {"completed": "[x] {}", "in_progress": "[ ] {} (in progress)"}

_LOCATIONS: Final = 20
"""Places of a call that its block names."""

_NO_ENDS: Final = {
    "max_turn_requests": (
        "The agent has stopped: it has made as many requests as it makes in one turn.",
        "limit",
    ),
    "cancelled": ("The agent says that its turn was cancelled.",),
}
"""Reasons for an end with which an answer is not whole, and what people are told of them."""

_ENDED: Final = "The turn ended before the agent said what came of this call."


def content_text(content: Any) -> str:
    """Return content as text; what is none is named in a line."""
    match content:
        case schema.TextContentBlock(text=text):
            return text
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents(text=text)):
            return text
        case schema.EmbeddedResourceContentBlock(resource=resource):
            return f"[{resource.mime_type or 'file'}: {resource.uri}]\n"
        case schema.ResourceContentBlock():
            return f"[{content.name}]({content.uri})\n"
    return f"[{content.type}: {content.mime_type}]\n"


@dataclass(eq=False, slots=True)
class _AgentCall:
    """A call of the agent, from the first word of it to its result."""

    block: str
    shell: bool
    said: dict[str, Any] = field(default_factory=dict)
    """Text and header fields of its block."""
    output: str | None = None
    """Its result, as the agent has said it."""
    result: CallBlocks | None = None
    has_ended: bool = False
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Old and new text of each file that it changes, or of parts of them."""


@dataclass(eq=False, slots=True)
class TurnUpdates:
    """Everything that an agent says in one turn."""

    turn: AgentTurn
    terminals: AgentTerminals
    _kind: BlockKind | None = None
    _block: str = ""
    _message: str | None = None
    _last: str | None = None
    _plan: str | None = None
    _calls: dict[str, _AgentCall] = field(default_factory=dict)

    async def take(self, update: object) -> None:
        """Write what an update says.

        Raises:
            AntiphonError: if it cannot be written, as when somebody has ended the block.
        """
        match update:
            case schema.AgentMessageChunk(content=content, message_id=message):
                await self._say(BlockKind.TEXT, content_text(content), message)
            case schema.AgentThoughtChunk(content=content, message_id=message):
                await self._say(BlockKind.THINKING, content_text(content), message)
            case schema.ToolCallStart() | schema.ToolCallUpdate():
                await self._take_call(update)
            case schema.AgentPlanUpdate():
                marked = ((_PLAN_MARKS.get(one.status, "[ ] {}"), one) for one in update.entries)
                await self._write_plan([mark.format(one.content) for mark, one in marked])

    async def end(self, reason: str, usage: schema.Usage | None) -> None:
        """End the turn as the agent has ended it.

        Raises:
            TurnFailed: if that was no end of an answer.
        """
        is_cut, is_text = reason in (MAX_TOKENS, REFUSED), self._kind is BlockKind.TEXT
        await self._end_text(reason if is_cut else None)
        writer = self.turn.writer
        for call in [one for one in self._calls.values() if not one.has_ended]:
            await (call.result or await open_result(writer, call.block)).fail(_ENDED)
        if self._plan is not None:
            await writer.finish(self._plan, Status.DONE)
        if usage is not None and usage.total_tokens:
            cached, written = usage.cached_read_tokens or 0, usage.cached_write_tokens or 0
            tokens = usage.input_tokens, cached, written, usage.output_tokens
            used = TokenUsage(1, *tokens, usage.thought_tokens or 0, unpriced=1)
            if self._last is not None:
                writer.describe(self._last, metadata={USAGE: used.as_json()})
            asker, agent = self.turn.asker.session.principal.id, writer.actor.principal.id
            await writer.kernel.usage.add(writer.context.id, agent, asker, used)
        if reason in _NO_ENDS:
            raise TurnFailed(*_NO_ENDS[reason])
        if is_cut and not is_text:
            raise TurnFailed(f"The answer ended before it began: {reason}.")
        if self._last is None:
            raise TurnFailed("The agent has answered nothing.")

    # Text

    async def _say(self, kind: BlockKind, text: str, message: str | None) -> None:
        turn = self.turn
        if kind is not self._kind or message != self._message:
            await self._end_text()
            # Created empty, so that all its text is one thing to undo.
            self._block = self._last = await turn.writer.create(kind, turn.prompt)
            self._kind, self._message = kind, message
            turn.presence.write_in(self._block)
        await turn.writer.append(self._block, text)

    async def _end_text(self, reason: str | None = None) -> None:
        if self._kind is not None:
            self._kind = None
            fields = {} if reason is None else {"stop_reason": reason}
            await self.turn.writer.finish(self._block, Status.DONE, **fields)

    async def _write_plan(self, steps: list[str]) -> None:
        writer = self.turn.writer
        if self._plan is None:
            await self._end_text()
            self._plan = self._last = await writer.create(
                BlockKind.TEXT, self.turn.prompt, steps, schema=_PLAN
            )
        else:
            params = {"block_id": self._plan, "content": steps}
            await writer.kernel.call(writer.actor, "block.import", params)

    # Calls

    async def _take_call(self, update: schema.ToolCallStart | schema.ToolCallUpdate) -> None:
        """Write what is said of a call, which may be new.

        One of whose blocks somebody has ended is followed no more.
        """
        call = self._calls.get(update.tool_call_id)
        if call is None or (call.has_ended and isinstance(update, schema.ToolCallStart)):
            call = await self._begin_call(update)
        if call.has_ended:
            return
        try:
            await self._write_call(call, update)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_TRANSITION:
                raise
            _log.info("call %s was ended by somebody else: %s", call.block, error)
            call.has_ended = True
            writer = self.turn.writer
            for block in (*writer.context.block_tree.descendants(call.block, 1), call.block):
                await writer.finish(block, Status.ERROR, is_error=True)

    async def _begin_call(self, update: schema.ToolCallStart | schema.ToolCallUpdate) -> _AgentCall:
        await self._end_text()
        turn, is_shell = self.turn, update.kind == "execute"
        name = SHELL if is_shell else _title(update) or update.kind or "tool"
        number = len(self._calls)
        block = await begin_call(turn.writer, turn.prompt, uuid.uuid4().hex, name, "", number)
        turn.calls[update.tool_call_id] = self._last = block
        turn.presence.write_in(block)
        call = self._calls[update.tool_call_id] = _AgentCall(block, is_shell)
        return call

    async def _write_call(
        self, call: _AgentCall, update: schema.ToolCallStart | schema.ToolCallUpdate
    ) -> None:
        turn, writer = self.turn, self.turn.writer
        text, fields = self._described(call, update)
        if text is not None or fields:
            writer.describe(call.block, text=text, **fields)
        if update.status == "in_progress" and call.result is None:
            await writer.begin(call.block)
        said = [self._content(one) for one in update.content or () if one.type != "diff"]
        if update.content is not None:
            call.output = "\n".join(one.removesuffix("\n") for one in said)
        has_ended = update.status in ("completed", "failed")
        if has_ended and not call.output and update.raw_output is not None:
            call.output = _raw_text(update.raw_output)
        if call.output or has_ended:
            call.result = call.result or await open_result(writer, call.block)
            kept = KeptOutput(turn.settings.output_code_points)
            text = kept.add(call.output or "") + kept.take_rest()
            before = "".join(call.result.output)
            if text.startswith(before):
                await writer.append(call.result.result, text[len(before) :])
            else:
                writer.describe(call.result.result, text=text)
            call.result.output[:] = [text]
            if has_ended:
                call.has_ended = True
                is_failed = update.status == "failed"
                status, truncated = Status.ERROR if is_failed else Status.DONE, kept.left_out > 0
                fields = {"is_error": True} if is_failed else {}
                await writer.finish(call.result.result, status, truncated=truncated, **fields)
                await call.result.end(status, **fields)

    def _described(
        self, call: _AgentCall, update: schema.ToolCallStart | schema.ToolCallUpdate
    ) -> tuple[str | None, dict[str, Any]]:
        """Return the text and the header fields of a call, as far as an update changes them."""
        stated: dict[str, Any] = {"kind": update.kind, "title": _title(update) or None}
        if update.locations is not None:
            stated["locations"] = [
                {"path": self._named(one.path)} | ({"line": one.line - 1} if one.line else {})
                for one in update.locations[:_LOCATIONS]
            ]
        about = call.said.get("metadata", {}).get(AGENT_CALL, {})
        about = about | {name: value for name, value in stated.items() if value is not None}
        new: dict[str, Any] = {"metadata": {AGENT_CALL: about}}
        if isinstance(update.raw_input, dict) and update.raw_input:
            given = json.dumps(update.raw_input, ensure_ascii=False)
            most = self.turn.writer.kernel.limits.value_code_points
            new["input"] = given if len(given) <= most else "{}"  # what it writes, most often
        # People read how files change in the call, as they do for models.
        for one in update.content or ():
            if one.type == "diff":
                old, known = one.old_text or "", call.changes.get(one.path)
                if known is None or old not in known[0] or one.new_text not in known[1]:
                    call.changes[one.path] = old, one.new_text  # else a part of what it has shown
        changes = [
            unified_diff(*_lines(*texts), self._named(path)) for path, texts in call.changes.items()
        ]
        if call.shell:
            raw = update.raw_input if isinstance(update.raw_input, dict) else {}
            command = raw.get("command")
            new["text"] = (
                command if isinstance(command, str) else call.said.get("text", _title(update))
            )
        elif any(changes):
            kept = KeptOutput(self.turn.settings.output_code_points)
            shown = kept.add("".join(changes)) + kept.take_rest()
            new |= {"text": shown, "tool_name": EDIT}
        elif update.title is not None and call.said.get("tool_name") != EDIT:
            new["tool_name"] = _title(update) or "tool"
        fields = {name: value for name, value in new.items() if call.said.get(name) != value}
        call.said |= fields
        return fields.pop("text", None), fields

    def _content(self, content: Any) -> str:
        """Return a part of a call's result as text."""
        if content.type == "content":
            return content_text(content.content)
        try:
            block = self.terminals.block(content.terminal_id)
        except AntiphonError:
            return "[a terminal that is not there any more]"
        return f"[output in {self.turn.writer.context.block_name(block)}]"

    def _named(self, path: str) -> str:
        """Return a path as it is named in the project."""
        project = str(self.turn.writer.kernel.project)
        return os.path.relpath(path, project) if path.startswith(f"{project}{os.sep}") else path


def _lines(old: str, new: str) -> tuple[str, str]:
    """Return two texts, or parts of texts, as whole lines if neither ends with one."""
    is_part = bool(old) and not old.endswith("\n") and not new.endswith("\n")
    return (f"{old}\n", f"{new}\n") if is_part else (old, new)


def _title(update: schema.ToolCallStart | schema.ToolCallUpdate) -> str:
    return one_line(update.title or "")


def _raw_text(output: Any) -> str:
    """Return the output of a tool as text."""
    if isinstance(output, dict) and isinstance(output.get("output"), str):
        return str(output["output"])
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
