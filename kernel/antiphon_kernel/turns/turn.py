"""One turn of one model: rounds of text and tool calls, written into blocks as they come."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from antiphon_kernel.contexts import WriterPresence, without_collection
from antiphon_kernel.providers.events import (
    End,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    Usage,
)
from antiphon_kernel.providers.provider import ModelPrompt, Provider, RoundRequest, ToolOutcome
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.turns.asker import Asker, AskerDismissed
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.shell_call import SHELL, fail_call, open_call, run_command
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.roles import Permission

_log = logging.getLogger(__name__)

MAX_ROUNDS = 100
"""A turn that calls tools more often than this is stopped."""

_NATURAL_ENDS = ("end_turn", "tool_use")


class TurnFailed(Exception):
    """The provider gave up, or the turn did not come to an end."""


class Turn:
    """Plays a provider's rounds until one ends without a tool call."""

    def __init__(
        self,
        provider: Provider,
        writer: BlockWriter,
        presence: WriterPresence,
        prompt: str,
        text: str,
        asker: Asker,
    ) -> None:
        """
        Args:
            text: what the block `prompt` said when it was sent.
            asker: with whose rights commands run, and for how long.
        """
        self._provider = provider
        self._writer = writer
        self._presence = presence
        self._prompt = prompt
        self._text = text
        self._asker = asker
        self._kind: BlockKind | None = None
        self._block = ""

    async def play(self) -> None:
        """Play the turn to its end.

        Raises:
            TurnFailed: if the provider gave up. Open blocks are the caller's to finish then, as
                after any other error and after a cancellation.
        """
        results: tuple[ToolOutcome, ...] = ()
        context = self._writer.context
        for number in range(MAX_ROUNDS):
            request = RoundRequest(context.id, self._text, number, results, self._read)
            calls = await self._round(request)
            if not calls:
                return
            results = tuple([await self._answer(call, number) for call in calls])
        raise TurnFailed(f"The turn was stopped after {MAX_ROUNDS} rounds of tool calls.")

    async def fail(self, message: str) -> None:
        """End what is open and say why, where everybody sees it."""
        await self._writer.finish_all(Status.ERROR)
        block = await self._writer.create(BlockKind.ERROR, self._prompt, message)
        await self._writer.finish(block, Status.ERROR, is_error=True)

    async def _read(self) -> ModelPrompt:
        """Return what the model reads now: all that was written, streams included."""
        context = self._writer.context
        await context.current_layout()
        live, model = context.layout.turn_of(self._prompt), self._writer.actor.principal.id
        with without_collection():
            return ModelPrompt(context.layout.read(model, live=live).request())

    async def _round(self, request: RoundRequest) -> list[ToolCallEvent]:
        """One round's events into blocks; the calls that its tools have to answer."""
        calls: list[ToolCallEvent] = []
        self._presence.write_in(None)
        async with aclosing(self._provider.stream(request)) as events:
            async for event in events:
                match event:
                    case ThinkingDelta(text):
                        await self._write(BlockKind.THINKING, text)
                    case TextDelta(text):
                        await self._write(BlockKind.TEXT, text)
                    case ToolCallEvent():
                        calls.append(event)
                    case Usage(taken, made):
                        _log.info("%s: %d tokens in, %d out", self._name, taken, made)
                    case End(reason):
                        await self._end_block(reason)
                    case ProviderError(message):
                        raise TurnFailed(message)
        await self._end_block()
        return calls

    async def _write(self, kind: BlockKind, text: str) -> None:
        if kind is not self._kind:
            await self._end_block()
            # Created empty, so that all its text is one thing to undo.
            self._block = await self._writer.create(kind, self._prompt)
            self._kind = kind
            self._presence.write_in(self._block)
        await self._writer.append(self._block, text)

    async def _end_block(self, reason: str | None = None) -> None:
        if self._kind is None:
            return
        self._kind = None
        fields = {} if reason is None or reason in _NATURAL_ENDS else {"stop_reason": reason}
        await self._writer.finish(self._block, Status.DONE, **fields)

    async def _answer(self, call: ToolCallEvent, number: int) -> ToolOutcome:
        command = _command(call.input)
        blocks = await open_call(
            self._writer,
            self._prompt,
            call.id,
            name=truncate(sanitize(call.name)),
            arguments=call.input,
            content=command or json.dumps(call.input, ensure_ascii=False),
            made_in=number,
        )
        if call.name != SHELL:
            message = f"There is no tool {quote(call.name)}; the only one is {SHELL!r}."
            return await fail_call(self._writer, blocks, message)
        if command is None:
            message = f"{SHELL!r} takes `command`, a string that is not empty."
            return await fail_call(self._writer, blocks, message)
        run = partial(run_command, self._writer, blocks, command, self._presence.write_in)
        try:
            return await self._asker.run(Permission.OWN, run)
        except AskerDismissed as error:
            message = error.command_refusal("this turn answers a message")
            fields = {"stop_reason": INTERRUPTED} if error.has_begun else {}
            return await fail_call(self._writer, blocks, message, **fields)

    @property
    def _name(self) -> str:
        return self._writer.actor.principal.username


def _command(arguments: Mapping[str, Any] | str) -> str | None:
    if isinstance(arguments, str):
        return None
    command = arguments.get("command")
    return command if isinstance(command, str) and command.strip() else None
