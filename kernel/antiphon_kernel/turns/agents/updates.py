"""Updates of an agent's turn: text, reasoning, calls and plan, written into blocks as they come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from acp import schema

from antiphon_kernel.document.schema import ListSchema, TextSchema, encode_schema
from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.turns.agents.agent_turn import AgentCall, AgentTurn
from antiphon_kernel.turns.agents.files import EDIT
from antiphon_kernel.turns.block_writer import SHELL, KeptOutput
from antiphon_kernel.turns.turn import SpokenBlocks, TurnFailed, one_line
from antiphon_kernel.types.block_metadata import AGENT_CALL
from antiphon_kernel.types.constants import MAX_TOKENS, REFUSED
from antiphon_kernel.types.enums import BlockKind, Status

_PLAN: Final = json.loads(encode_schema(ListSchema(item_schema=TextSchema())))
_PLAN_MARKS: Final = {"completed": "[x] {}", "in_progress": "[ ] {} (in progress)"}

_LOCATIONS: Final = 20
"""Places of a call that its block names."""

_BROKEN_OFF: Final = {
    "max_turn_requests": "it has made as many requests as it makes in one turn",
    "cancelled": "it says that its turn was cancelled",
}
"""Ends with which an answer is not whole."""

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
class TurnUpdates(SpokenBlocks):
    """Everything that an agent says in one turn."""

    turn: AgentTurn
    _plan: str | None = None

    async def take(self, update: object) -> None:
        """Write what an update says.

        Raises:
            AntiphonError: if it cannot be written, as when somebody has ended the block.
        """
        match update:
            case schema.AgentMessageChunk(content=content, message_id=message):
                await self.write(BlockKind.TEXT, content_text(content), message)
            case schema.AgentThoughtChunk(content=content, message_id=message):
                await self.write(BlockKind.THINKING, content_text(content), message)
            case schema.ToolCallStart() | schema.ToolCallUpdate():
                await self._take_call(update)
            case schema.AgentPlanUpdate():
                await self._write_plan(update.entries)

    async def end(self, reason: str, usage: schema.Usage | None) -> None:
        """End the turn as the agent has ended it.

        Raises:
            TurnFailed: if that was no end of an answer.
        """
        is_cut, is_text = reason in (MAX_TOKENS, REFUSED), self._kind is BlockKind.TEXT
        await self.end_block(reason if is_cut else None)
        writer = self.turn.writer
        for call in [one for one in self.turn.calls.values() if not one.has_ended]:
            await (call.result or await writer.open_result(call.block)).fail(_ENDED)
        if self._plan is not None:
            await writer.finish(self._plan, Status.DONE)
        if usage is not None and usage.total_tokens:
            cached, written = usage.cached_read_tokens or 0, usage.cached_write_tokens or 0
            tokens = usage.input_tokens, cached, written, usage.output_tokens
            used = TokenUsage(0, *tokens, usage.thought_tokens or 0).priced(None)
            await writer.count(used, self.turn.asker.session.principal.id, self.last)
        if reason in _BROKEN_OFF:
            raise TurnFailed(f"The agent has stopped: {_BROKEN_OFF[reason]}.", "limit")
        if self.last is None or (is_cut and not is_text):
            raise TurnFailed(f"The agent has ended without an answer: {reason}.")

    async def _write_plan(self, entries: Sequence[schema.PlanEntry]) -> None:
        steps = [_PLAN_MARKS.get(one.status, "[ ] {}").format(one.content) for one in entries]
        if self._plan is not None:
            await self._set(self._plan, steps)
            return
        await self.end_block()
        create, prompt = self.turn.writer.create, self.turn.prompt
        self._plan = self.last = await create(BlockKind.TEXT, prompt, steps, schema=_PLAN)

    # Calls

    async def _take_call(self, update: schema.ToolCallStart | schema.ToolCallUpdate) -> None:
        """Write what is said of a call, which may be new."""
        writer = self.turn.writer
        call = self.turn.calls.get(update.tool_call_id) or await self._begin_call(update)
        if call.has_ended:
            return
        self._describe(call.block, update)
        if update.status == "in_progress" and call.result is None:
            await writer.begin(call.block)
        if update.content is not None:
            said = [self._content(one) for one in update.content if one.type != "diff"]
            call.output = "\n".join(one.removesuffix("\n") for one in said)
        call.has_ended = update.status in ("completed", "failed")
        if call.has_ended and not call.output and update.raw_output is not None:
            call.output = _raw_text(update.raw_output)
        if not call.output and not call.has_ended:
            return
        result = call.result = call.result or await writer.open_result(call.block)
        kept = KeptOutput(self.turn.settings.output_code_points)
        result.output[:] = [kept.add(call.output) + kept.take_rest()]
        await self._set(result.result, result.output[0])
        if call.has_ended:
            failed = update.status == "failed"
            status, truncated = Status.ERROR if failed else Status.DONE, kept.left_out > 0
            await writer.finish(result.result, status, truncated=truncated, is_error=failed)
            await result.end(status, is_error=failed)

    async def _begin_call(self, update: schema.ToolCallStart | schema.ToolCallUpdate) -> AgentCall:
        await self.end_block()
        turn, title = self.turn, one_line(update.title or "")
        name, text = (SHELL, title) if update.kind == "execute" else (title or "tool", "")
        number = len(turn.calls)
        block = await turn.writer.begin_call(turn.prompt, name, text, number)
        self.last = block
        turn.presence.write_in(block)
        call = turn.calls[update.tool_call_id] = AgentCall(block)
        return call

    def _describe(self, block: str, update: schema.ToolCallStart | schema.ToolCallUpdate) -> None:
        """Write what an update says of a call itself: what it is about, and what it does."""
        writer, raw = self.turn.writer, update.raw_input
        document = writer.context.document
        header, title = document.header(block), one_line(update.title or "")
        about = {"kind": update.kind, "title": title}
        new: dict[str, Any] = {name: value for name, value in about.items() if value}
        if update.locations is not None:
            new["locations"] = [
                {"path": self._named(one.path)} | ({"line": one.line - 1} if one.line else {})
                for one in update.locations[:_LOCATIONS]
            ]
        new = {"metadata": {AGENT_CALL: header.metadata.get(AGENT_CALL, {}) | new}}
        if isinstance(raw, dict) and raw:
            given = json.dumps(raw, ensure_ascii=False)
            most = writer.kernel.limits.value_code_points
            new["input"] = given if len(given) <= most else "{}"  # what it writes, most often
        # People read how files change in the call, as they do for models.
        changes = "".join(
            unified_diff(*_lines(one.old_text or "", one.new_text), self._named(one.path))
            for one in update.content or ()
            if one.type == "diff"
        )
        if header.tool_name == SHELL:
            if isinstance(raw, dict) and isinstance(raw.get("command"), str):
                new["text"] = raw["command"]
        elif changes:
            new["tool_name"], shown = EDIT, document.text(block)
            lines = [line[1:] for line in changes.split("\n") if line.startswith(("+", "-"))]
            if not all(line in shown for line in lines):  # else a part of what it has shown
                kept = KeptOutput(self.turn.settings.output_code_points)
                new["text"] = kept.add(changes) + kept.take_rest()
        elif title and header.tool_name != EDIT:
            new["tool_name"] = title
        writer.describe(block, **new)

    async def _set(self, block: str, content: str | list[str]) -> None:
        writer, params = self.turn.writer, {"block_id": block, "content": content}
        await writer.kernel.call(writer.actor, "block.import", params)

    def _content(self, content: Any) -> str:
        """Return a part of a call's result as text."""
        if content.type == "content":
            return content_text(content.content)
        context = self.turn.writer.context  # a terminal has the id of its block
        is_there = content.terminal_id in context.document
        return f"[output in {context.block_name(content.terminal_id)}]" if is_there else ""

    def _named(self, path: str) -> str:
        """Return a path as it is named in the project."""
        return path.removeprefix(f"{self.turn.writer.kernel.project}/")


def _lines(old: str, new: str) -> tuple[str, str]:
    """Return two texts, or parts of texts, as whole lines if neither ends with one."""
    is_part = bool(old) and not old.endswith("\n") and not new.endswith("\n")
    return (f"{old}\n", f"{new}\n") if is_part else (old, new)


def _raw_text(output: Any) -> str:
    """Return the output of a tool as text."""
    if isinstance(output, dict) and isinstance(output.get("output"), str):
        return str(output["output"])
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
