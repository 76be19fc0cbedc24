"""Events of one round of a model, written into blocks as they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.layout import signature_metadata
from antiphon_kernel.messages import Thinking
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.shell_call import SHELL, begin_call
from antiphon_kernel.turns.tool_calls import RoundCall
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import truncate


@dataclass(eq=False, slots=True)
class RoundBlocks:
    """The blocks of one round: reasoning, text, and calls with their arguments."""

    writer: BlockWriter
    presence: WriterPresence
    prompt: str
    number: int
    """Number of the round, from 0."""
    taken: Callable[[], set[str]]
    """Returns the ids of calls in use on this path; those of this round are added."""
    calls: list[RoundCall] = field(default_factory=list)
    last: str | None = None
    """The last block that was begun."""
    has_shown: bool = False
    """Whether some of the answer is there to be read: text or a call."""
    _kind: BlockKind | None = None
    _block: str = ""
    _thought: list[str] = field(default_factory=list)
    _open: dict[str, RoundCall] = field(default_factory=dict)

    async def think(self, text: str) -> None:
        """Write more reasoning."""
        text = replace_half_characters(text)
        await self._write(BlockKind.THINKING, text)
        self._thought.append(text)

    async def end_thinking(self, signature: str | None) -> None:
        """End the reasoning, and keep what the provider signed it with."""
        if self._kind is not BlockKind.THINKING:
            return
        signed = signature_metadata(Thinking("".join(self._thought), signature))
        if signed:
            self.writer.describe(self._block, metadata=signed)
        await self.end_block()

    async def say(self, text: str) -> None:
        """Write more of the answer."""
        self.has_shown = True
        await self._write(BlockKind.TEXT, replace_half_characters(text))

    async def begin_call(self, call_id: str, name: str, content: str = "") -> RoundCall:
        """Create the block of a call that the model begins to write."""
        self.has_shown = True
        await self.end_block()
        taken = self.taken()
        unique = first = one_line(call_id) or "call"
        number = 2
        while unique in taken:
            unique, number = f"{first}-{number}", number + 1
        taken.add(unique)
        name = one_line(name) or "tool"
        block = await begin_call(self.writer, self.prompt, unique, name, content, self.number)
        call = RoundCall(call_id, block)
        self._open[call_id] = call
        self.calls.append(call)
        self.last = block
        return call

    async def write_arguments(self, call_id: str, text: str) -> None:
        """Write more of a call's arguments."""
        call = self._open.get(call_id)
        if call is not None:
            await self.writer.append(call.block, replace_half_characters(text))

    async def end_call(self, event: ToolCallEvent) -> None:
        """Complete a call, which may not have been begun before."""
        call = self._open.get(event.id)
        text: str | None = _shown(event)
        if call is None:
            call = await self.begin_call(event.id, event.name, text or "")
        elif self.writer.context.document.length(call.block) and event.name != SHELL:
            text = None  # as the model wrote it
        del self._open[event.id]
        fields: dict[str, object] = {}
        try:
            if not isinstance(event.input, str):
                fields["input"] = json.dumps(event.input, ensure_ascii=False)
            if event.signature is not None:
                fields["metadata"] = {CALL_SIGNATURE: event.signature}
            self.writer.describe(call.block, text=text, **fields)
            call.event = event
        except AntiphonError as error:
            call.problem = error.message

    async def end_block(self, reason: str | None = None) -> None:
        """End the text or reasoning that is being written."""
        if self._kind is None:
            return
        self._kind = None
        self._thought.clear()
        fields = {} if reason is None else {"stop_reason": reason}
        await self.writer.finish(self._block, Status.DONE, **fields)

    async def _write(self, kind: BlockKind, text: str) -> None:
        if kind is not self._kind:
            await self.end_block()
            # Created empty, so that all its text is one thing to undo.
            self._block = self.last = await self.writer.create(kind, self.prompt)
            self._kind = kind
            self.presence.write_in(self._block)
        await self.writer.append(self._block, text)


def _shown(event: ToolCallEvent) -> str:
    """Return the text of a call's block: the command, or the arguments as JSON."""
    text = (
        event.input if isinstance(event.input, str) else json.dumps(event.input, ensure_ascii=False)
    )
    if event.name == SHELL and not isinstance(event.input, str):
        command = event.input.get("command")
        text = command if isinstance(command, str) and command.strip() else text
    return replace_half_characters(text)


def one_line(text: str) -> str:
    """Return a name or a word of a provider's as a header field can hold it."""
    return truncate(sanitize(" ".join(text.split())))
