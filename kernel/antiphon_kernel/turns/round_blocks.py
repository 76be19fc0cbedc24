"""Blocks of one round of a turn: what the model says, its calls, and the results of these."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.document.header import json_object
from antiphon_kernel.layout import ROUND, signature_metadata
from antiphon_kernel.messages import Thinking
from antiphon_kernel.providers.events import ProviderError, ToolCallEvent
from antiphon_kernel.storage import ToolPermission
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.turns.asker import Asker, AskerDismissed
from antiphon_kernel.turns.block_writer import (
    OUTPUT_LIMIT,
    SHELL,
    BlockWriter,
    CallBlocks,
    KeptOutput,
    begin_call,
    open_result,
)
from antiphon_kernel.turns.model_tools import ModelTools, PreparedCall, error_text
from antiphon_kernel.turns.permission import PermissionDesk, PermissionRequest
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE, RETRY
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import truncate

_log = logging.getLogger(__name__)

MAX_ROUNDS: Final = 100
"""A turn that calls tools more often than this is stopped."""

ATTEMPTS: Final = 4
"""How often a request is sent again at most."""

CUT_OFF: Final = (
    "The answer was cut off before this call was whole, so it was not run: make it again."
)
"""Result of a call whose arguments did not come to their end."""

ENDED: Final = "Not run: the turn ended before."
"""Result of a call whose turn failed before it could be run."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """Things that all turns of a kernel share: limits, None where there is no such limit."""

    max_rounds: int = MAX_ROUNDS
    request_tokens: int | None = None
    """Tokens of a request beyond which the context is compacted."""
    tokens: int | None = None
    """Tokens of all requests and answers of a turn."""
    money: float | None = None
    """US dollars for a turn."""
    seconds: float | None = None
    """Seconds from the beginning of a turn; no round begins after them."""
    tool_seconds: float = 60.0
    """Seconds that a tool may run."""
    shell_seconds: float = 600.0
    """Seconds that a command may run."""
    output_code_points: int = OUTPUT_LIMIT
    """Most of a result that is kept in its block."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits before a request is sent again."""
    instructions: Callable[[], str] = lambda: ""
    """Returns the project's instructions."""


@dataclass(eq=False, slots=True)
class RoundCall:
    """A call whose block is there, from the moment in which the model began to write it."""

    id: str
    """Id of the provider's."""
    block: str
    event: ToolCallEvent | None = None
    """The whole call; None as long as the model writes it."""
    problem: str | None = None
    """Reason why it cannot be kept, and is not run."""


@dataclass(eq=False, slots=True)
class RoundBlocks:
    """The blocks of one round: reasoning, text, calls with their results, notice of a retry.

    Calls are answered with the rights of whoever asked.
    """

    writer: BlockWriter
    presence: WriterPresence
    asker: Asker
    prompt: str
    number: int
    """Number of the round, from 0."""
    tools: ModelTools
    desk: PermissionDesk
    settings: TurnSettings
    taken: Callable[[], set[str]]
    """Returns the ids of calls in use on this path; those of this round are added."""
    calls: list[RoundCall] = field(default_factory=list)
    last: str | None = None
    """The last block that was begun since the request was sent."""
    has_shown: bool = False
    """Whether some of the answer is there to be read: text or a call."""
    _kind: BlockKind | None = None
    _block: str = ""
    _thought: list[str] = field(default_factory=list)
    _open: dict[str, RoundCall] = field(default_factory=dict)
    _notice: str | None = None
    """The block that says that the request is sent again; models are not given it."""
    _reason: str = ""
    """Message of the error that the last attempt ended with."""

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
        call = self._open[call_id] = RoundCall(call_id, block)
        self.calls.append(call)
        self.last = block
        return call

    async def write_arguments(self, call_id: str, text: str) -> None:
        """Write more of a call's arguments."""
        if (call := self._open.get(call_id)) is not None:
            await self.writer.append(call.block, replace_half_characters(text))

    async def end_call(self, event: ToolCallEvent) -> None:
        """Complete a call, which may not have been begun before."""
        call = self._open.get(event.id)
        said = event.input
        shown = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        if event.name == SHELL and not isinstance(said, str):
            command = said.get("command")
            shown = command if isinstance(command, str) and command.strip() else shown
        text: str | None = replace_half_characters(shown)
        if call is None:
            call = await self.begin_call(event.id, event.name, text or "")
        elif self.writer.context.document.length(call.block) and event.name != SHELL:
            text = None  # as the model wrote it
        del self._open[event.id]
        fields: dict[str, object] = {}
        try:
            if not isinstance(said, str):
                fields["input"] = json.dumps(said, ensure_ascii=False)
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

    # Sending again

    async def wait_to_retry(self, attempt: int, error: ProviderError, seconds: float) -> None:
        """Say why and when the request is sent again, and wait until then."""
        writer = self.writer
        if self._notice is None:
            self._notice = await writer.create(BlockKind.ERROR, self.prompt)
        said = {
            "attempt": attempt,
            "attempts": ATTEMPTS,
            "kind": str(error.kind),
            "seconds": seconds,
            "until": iso_time(writer.kernel.clock.now_ms() + round(seconds * 1000)),
        }
        reason = error.message.rstrip()
        if not reason.endswith((".", "!", "?")):
            reason += "."
        before, begin = writer.context.document.text(self._notice), f"{reason} "
        if reason == self._reason:
            before, begin = before.removesuffix("\n"), " "
        self._reason = reason
        text = f"{before}{begin}Retrying in {seconds:g} s ({attempt} of {ATTEMPTS}).\n"
        writer.describe(self._notice, text=text, excluded=True, metadata={RETRY: said})
        await self.settings.sleep(seconds)

    async def end_notice(self) -> None:
        """The provider has answered."""
        if self._notice is not None:
            await self.writer.finish(self._notice, Status.DONE)
            self._notice, self._reason = None, ""

    # Calls

    async def answer_calls(self) -> None:
        """Run each call and write its result: side by side if they all only read, else in order."""
        prepared = [(call, self._prepare(call)) for call in self.calls]
        reads = [one for _, one in prepared if not isinstance(one, str) and one.is_read_only]
        if len(prepared) > 1 and len(reads) == len(prepared):
            async with asyncio.TaskGroup() as group:
                for call, one in prepared:
                    group.create_task(self._answer(call, one))
        else:
            for call, one in prepared:
                await self._answer(call, one)

    async def close_calls(self) -> None:
        """Answer the calls that have no result yet, because the turn has failed."""
        for call in self.calls:
            tree, document = self.writer.context.block_tree, self.writer.context.document
            is_open = not Status(document.header(call.block).status).terminal
            if is_open and not list(tree.descendants(call.block, 1)):
                blocks = await open_result(self.writer, call.block)
                await blocks.fail(CUT_OFF if call.event is None else ENDED)

    def _prepare(self, call: RoundCall) -> PreparedCall | str:
        """Return a call that may be run, or why it may not."""
        if call.event is None:
            return call.problem or CUT_OFF
        try:
            return self.tools.prepare(call.event.name, call.event.input)
        except AntiphonError as error:
            return error_text(error)

    async def _answer(self, call: RoundCall, prepared: PreparedCall | str) -> None:
        """Run a call and write its result, unless somebody ends one of the two blocks before."""
        try:
            await self._run_and_write(call, prepared)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_TRANSITION:
                raise
            _log.info("call %s was ended by somebody else: %s", call.block, error)
            for block in (*self.writer.context.block_tree.descendants(call.block, 1), call.block):
                await self.writer.finish(block, Status.ERROR, is_error=True)

    async def _run_and_write(self, call: RoundCall, prepared: PreparedCall | str) -> None:
        if isinstance(prepared, str):
            await (await open_result(self.writer, call.block)).fail(prepared)
            return
        context, model = self.writer.context, self.writer.actor.principal.id
        refusal = await self.desk.decide(
            PermissionRequest(
                context, call.block, model, prepared.name, prepared.arguments, self.asker
            )
        )
        blocks = await open_result(self.writer, call.block)
        if refusal is not None:
            await blocks.fail(f"Not run: {refusal}")
            return
        try:
            await self.asker.run(prepared.needs, partial(self._run, blocks, prepared))
        except AskerDismissed as error:
            fields = {"stop_reason": INTERRUPTED} if error.has_begun else {}
            if prepared.tool is None:
                said = error.command_refusal("this turn answers a message")
            else:
                said = (
                    f"{'Ended' if error.has_begun else 'Not run'}: this turn answers a message of"
                    f" {error.asker}, and {prepared.name} takes the right to {prepared.needs}."
                )
            await blocks.fail(said, **fields)

    async def _run(self, blocks: CallBlocks, call: PreparedCall) -> None:
        settings = self.settings
        seconds = settings.shell_seconds if call.tool is None else settings.tool_seconds
        try:
            async with asyncio.timeout(seconds):
                if call.tool is None:
                    command = str(call.arguments["command"])
                    await blocks.run_command(command, self.presence.write_in)
                    return
                text = await self.tools.run(self.writer.actor, call)
        except TimeoutError:
            message = f"Stopped: it had not ended after {seconds:g} seconds."
            await blocks.fail(message, stop_reason="time_limit")
        except AntiphonError as error:
            await blocks.fail(error_text(error))
        else:
            kept = KeptOutput(settings.output_code_points)
            await self.writer.append(blocks.result, kept.add(text) + kept.take_rest())
            await self.writer.finish(blocks.result, Status.DONE, truncated=kept.left_out > 0)
            await blocks.end(Status.DONE)


def resumed_calls(
    writer: BlockWriter, undecided: Sequence[ToolPermission]
) -> tuple[int, list[RoundCall]]:
    """Return the round in which calls were made that still wait for people, and the calls."""
    calls, number = [], 0
    for one in undecided:
        writer.adopt(one.call)
        header = writer.context.document.header(one.call)
        made_in = header.metadata.get(ROUND)
        number = max(number, made_in if isinstance(made_in, int) else 0)
        call_id = header.tool_call_id or one.call
        arguments = json_object(header.input or "{}")
        calls.append(RoundCall(call_id, one.call, ToolCallEvent(call_id, one.tool, arguments)))
    return number, calls


def one_line(text: str) -> str:
    """Return a name or a word of a provider's as a header field can hold it."""
    return truncate(sanitize(" ".join(text.split())))
