"""One turn of one model: rounds of text and tool calls, written into blocks as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from antiphon_kernel.config import ContextTable
from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.document.header import json_object
from antiphon_kernel.layout import ROUND, Announcement, budget_text, signature_metadata
from antiphon_kernel.mcp_servers import McpServerFailed
from antiphon_kernel.messages import Thinking
from antiphon_kernel.providers import events
from antiphon_kernel.providers.events import ErrorKind, ProviderError, StopReason, ToolCallEvent
from antiphon_kernel.providers.model_config import TokenUsage
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.storage import ToolPermission
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.turns.asker import Asker, AskerDismissed
from antiphon_kernel.turns.block_writer import (
    OUTPUT_LIMIT,
    SHELL,
    BlockWriter,
    CallBlocks,
    KeptOutput,
)
from antiphon_kernel.turns.model_tools import ModelTools, PreparedCall, error_text, tools_of
from antiphon_kernel.turns.permission import PermissionDesk, PermissionRequest, tool_of
from antiphon_kernel.turns.prompt_reading import AnsweringModel, PromptReader, ReadPrompt
from antiphon_kernel.turns.served_calls import ServedCall, TurnServers
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE, CAN_RETRY, ERROR_KIND, RETRY
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import truncate

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
    limits: ContextTable = field(default_factory=ContextTable)
    """Tokens of a request, and tokens, price and seconds of a turn: no round begins after them."""
    tool_seconds: float = 60.0
    """Seconds that a tool may run."""
    shell_seconds: float = 600.0
    """Seconds that a command may run."""
    output_code_points: int = OUTPUT_LIMIT
    """Most of a result that is kept in its block."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits before a request is sent again, and until models begin by themselves."""
    agent_silence_seconds: float = 30.0
    """Seconds without a word of an agent that is starting after which it has failed."""
    agent_stop_seconds: float = 10.0
    """Seconds without a word of an agent that was stopped after which it is killed."""
    instructions: Callable[[], str] = lambda: ""


@dataclass(eq=False, slots=True)
class RoundCall:
    """A call whose block is there, from the moment in which the model began to write it."""

    block: str
    event: ToolCallEvent | None = None
    """The whole call; None as long as the model writes it."""
    problem: str | None = None
    """Reason why it cannot be kept, and is not run."""


@dataclass(eq=False)
class BaseTurn:
    """One turn of a model or an agent, while it is played."""

    writer: BlockWriter
    presence: WriterPresence
    prompt: str
    """The block that is answered."""
    asker: Asker
    """Principal with whose rights it works."""
    desk: PermissionDesk
    """Decides whether its calls may run."""
    settings: TurnSettings


@dataclass(eq=False, slots=True)
class SpokenBlocks:
    """Blocks of reasoning and text, each of them written as it comes until another one begins."""

    turn: BaseTurn
    last: str | None = None
    """The last block that was begun."""
    _kind: BlockKind | None = None
    _block: str = ""
    _message: str | None = None

    async def write(self, kind: BlockKind, text: str, message: str | None = None) -> None:
        """Write more; in a block of its own, if it is of another kind or another message."""
        turn = self.turn
        if kind is not self._kind or message != self._message:
            await self.end_block()
            # Created empty, so that all its text is one thing to undo.
            self._block = self.last = await turn.writer.create(kind, turn.prompt)
            self._kind, self._message = kind, message
            turn.presence.write_in(self._block)
        await turn.writer.append(self._block, text)

    async def end_block(self, reason: str | None = None) -> None:
        """End the text or reasoning that is being written."""
        if self._kind is not None:
            self._kind = None
            fields = {} if reason is None else {"stop_reason": reason}
            await self.turn.writer.finish(self._block, Status.DONE, **fields)


@dataclass(eq=False, slots=True)
class RoundBlocks(SpokenBlocks):
    """The blocks of one round: reasoning, text, calls with their results, notice of a retry.

    Calls are answered with the rights of whoever asked. `last` is one since the request was sent.
    """

    turn: Turn
    calls: list[RoundCall] = field(default_factory=list)
    has_shown: bool = False
    """Whether some of the answer is there to be read: text or a call."""
    _thought: list[str] = field(default_factory=list)
    _open: dict[str, RoundCall] = field(default_factory=dict)
    _notice: str | None = None
    """The block that says that the request is sent again; models are not given it."""
    _reason: str = ""
    """Message of the error that the last attempt ended with."""

    async def take(self, event: events.TurnEvent, answer: _Answer) -> None:
        """Write what an event says, or note it in the answer to the request."""
        writer = self.turn.writer
        match event:
            case events.ThinkingDelta(text):
                if self._kind is not BlockKind.THINKING:
                    self._thought.clear()
                text = replace_half_characters(text)
                await self.write(BlockKind.THINKING, text)
                self._thought.append(text)
            case events.ThinkingEnd(signature) if self._kind is BlockKind.THINKING:
                signed = signature_metadata(Thinking("".join(self._thought), signature))
                if signed:
                    writer.describe(self._block, metadata=signed)
                await self.end_block()
            case events.TextDelta(text):
                self.has_shown = True
                await self.write(BlockKind.TEXT, replace_half_characters(text))
            case events.ToolCallStart(call_id, name):
                await self._begin_call(call_id, name)
            case events.ToolCallDelta(call_id, text):
                if (call := self._open.get(call_id)) is not None:
                    await writer.append(call.block, replace_half_characters(text))
            case ToolCallEvent():
                await self._end_call(event)
            case TokenUsage():
                answer.usage = event
            case events.End(reason):
                answer.reason = one_line(reason)
            case ProviderError():
                shown = sanitize(event.message[:_ERROR_CODE_POINTS])
                answer.error = replace(event, message=shown)

    async def _begin_call(self, call_id: str, name: str, content: str = "") -> RoundCall:
        """Create the block of a call that the model begins to write."""
        self.has_shown = True
        await self.end_block()
        turn, name = self.turn, one_line(name) or "tool"
        block = await turn.writer.begin_call(turn.prompt, name, content, turn.round)
        call = self._open[call_id] = RoundCall(block)
        self.calls.append(call)
        self.last = block
        return call

    async def _end_call(self, event: ToolCallEvent) -> None:
        """Complete a call, which may not have been begun before."""
        call = self._open.get(event.id)
        said = event.input
        shown = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        if event.name == SHELL and not isinstance(said, str):
            command = said.get("command")
            shown = command if isinstance(command, str) and command.strip() else shown
        text: str | None = replace_half_characters(shown)
        if call is None:
            call = await self._begin_call(event.id, event.name, text or "")
        elif self.turn.writer.context.document.length(call.block) and event.name != SHELL:
            text = None  # as the model wrote it
        del self._open[event.id]
        fields: dict[str, object] = {}
        try:
            if not isinstance(said, str):
                fields["input"] = json.dumps(said, ensure_ascii=False)
            if event.signature is not None:
                fields["metadata"] = {CALL_SIGNATURE: event.signature}
            self.turn.writer.describe(call.block, text=text, **fields)
            call.event = event
        except AntiphonError as error:
            call.problem = error.message

    # Sending again

    async def wait_to_retry(self, attempt: int, error: ProviderError, seconds: float) -> None:
        """Say why and when the request is sent again, and wait until then."""
        writer = self.turn.writer
        if self._notice is None:
            self._notice = await writer.create(BlockKind.ERROR, self.turn.prompt)
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
        await self.turn.settings.sleep(seconds)

    async def end_notice(self) -> None:
        """The provider has answered."""
        if self._notice is not None:
            await self.turn.writer.finish(self._notice, Status.DONE)
            self._notice, self._reason = None, ""

    # Calls

    async def answer_calls(self) -> None:
        """Run each call and write its result: side by side if they all only read, else in order."""
        prepared = [(call, await self._prepare(call)) for call in self.calls]
        reads = [one for _, one in prepared if not isinstance(one, str) and one.reads]
        if len(prepared) > 1 and len(reads) == len(prepared):
            async with asyncio.TaskGroup() as group:
                for call, one in prepared:
                    group.create_task(self._answer(call, one))
        else:
            for call, one in prepared:
                await self._answer(call, one)

    async def close_calls(self) -> None:
        """Answer the calls that have no result yet, because the turn has failed."""
        writer, context = self.turn.writer, self.turn.writer.context
        for call in self.calls:
            is_open = not Status(context.document.header(call.block).status).terminal
            if is_open and not list(context.block_tree.descendants(call.block, 1)):
                blocks = await writer.open_result(call.block)
                await blocks.fail(CUT_OFF if call.event is None else ENDED)

    async def _prepare(self, call: RoundCall) -> PreparedCall | str:
        """Return a call that may be run, or why it may not."""
        if call.event is None:
            return call.problem or CUT_OFF
        try:
            return await self.turn.tools.prepare(call.event.name, call.event.input)
        except AntiphonError as error:
            return error_text(error)

    async def _answer(self, call: RoundCall, prepared: PreparedCall | str) -> None:
        """Run a call and write its result, unless somebody ends one of the two blocks before."""
        try:
            await self._run_and_write(call, prepared)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_TRANSITION:
                raise
            writer = self.turn.writer
            results = writer.context.block_tree.descendants(call.block, 1)
            for block in (*results, call.block):
                await writer.finish(block, Status.ERROR, is_error=True)

    async def _run_and_write(self, call: RoundCall, prepared: PreparedCall | str) -> None:
        if isinstance(prepared, str):
            await (await self.turn.writer.open_result(call.block)).fail(prepared)
            return
        context, model = self.turn.writer.context, self.turn.writer.actor.principal.id
        blocks: CallBlocks | None = None
        try:
            shown, problem = "", None
            if prepared.is_about_files:
                try:
                    shown = await self._show_change(call, prepared)
                except AntiphonError as error:
                    problem = error_text(error)
            if problem is None:
                request = PermissionRequest(
                    *(context, call.block, model, prepared.name, prepared.arguments),
                    self.turn.asker,
                    prepared.changes,
                    shown,
                    definition=prepared.served.digest if prepared.served is not None else "",
                )
                refusal = await self.turn.desk.decide(request)
                problem = f"Not run: {refusal}" if refusal is not None else None
            blocks = await self.turn.writer.open_result(call.block)
            if problem is not None:
                await blocks.fail(problem)
                return
            await self.turn.asker.run(prepared.needs, partial(self._run, blocks, prepared))
        except AskerDismissed as error:
            blocks = blocks or await self.turn.writer.open_result(call.block)
            fields = {"stop_reason": INTERRUPTED} if error.has_begun else {}
            if prepared.tool is None and prepared.served is None:
                said = error.command_refusal("this turn answers a message")
            else:
                said = (
                    f"{'Ended' if error.has_begun else 'Not run'}: this turn answers a message of"
                    f" {error.asker}, and {prepared.name} takes the right to {prepared.needs}."
                )
            await blocks.fail(said, **fields)

    async def _show_change(self, call: RoundCall, prepared: PreparedCall) -> str:
        """Let people see in a call's block how it would change files; return what they see.

        Raises:
            AntiphonError: what the call would fail with.
        """
        tools, writer = self.turn.tools, self.turn.writer
        if call.block in writer.kernel.tool_permissions.undecided:
            tools.resume(prepared)
        preview = partial(tools.preview, writer.actor, prepared)
        difference = await self.turn.asker.run(prepared.needs, preview)
        if not difference:
            return ""
        writer.describe(call.block, text=difference)
        return writer.context.document.text(call.block)

    async def _run(self, blocks: CallBlocks, call: PreparedCall) -> None:
        settings = self.turn.settings
        seconds = settings.shell_seconds if call.tool is None else settings.tool_seconds
        served: ServedCall | None = None
        if call.served is not None:
            served = ServedCall(self.turn.servers, call.served, self.turn.asker, blocks)
            seconds = served.seconds
        failed: dict[str, str] | None = None
        try:
            async with asyncio.timeout(seconds) as limit:
                if served is not None:
                    text = await served.run(call.arguments, limit)
                elif call.tool is None:
                    command = str(call.arguments["command"])
                    save, on_start = self.turn.tools.save_changed, self.turn.presence.write_in
                    await blocks.run_command(command, save, on_start)
                    return
                else:
                    text = await self.turn.tools.run(self.turn.writer.actor, call)
        except TimeoutError:
            text = f"Stopped: it had not ended after {seconds:g} seconds."
            failed = {"stop_reason": "time_limit"}
        except AntiphonError as error:
            text, failed = error_text(error), {}
        except McpServerFailed as error:
            text, failed = str(error), {}
        if served is not None:
            served.clear()
        kept = KeptOutput(settings.output_code_points)
        text = kept.add(text) + kept.take_rest()
        if failed is not None:
            await blocks.fail(text, **failed)
            return
        await self.turn.writer.append(blocks.result, text)
        if served is not None:
            await served.write_files()
        await self.turn.writer.finish(blocks.result, Status.DONE, truncated=kept.left_out > 0)
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
        arguments = json_object(header.input or "{}")
        calls.append(RoundCall(one.call, ToolCallEvent(one.call, tool_of(one), arguments)))
    return number, calls


def one_line(text: str) -> str:
    """Return a name or a word of a provider's as a header field can hold it."""
    return truncate(sanitize(" ".join(text.split())))


_NATURAL_ENDS = (StopReason.END_TURN, StopReason.TOOL_USE)

_COMPACTIONS = 2
"""How often a context is compacted because the provider refuses a request."""

_ERROR_CODE_POINTS: Final = 4_096
"""Code points of an error's message that people are shown."""

LONGEST_DELAY: Final = 300.0
"""Seconds; if a provider asks for more, the turn ends instead."""

RETRIED: Final = (ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED, ErrorKind.UNREACHABLE)
"""Kinds of errors after which the same request may succeed."""

_FIRST_DELAY: Final = 2.0


def delay_before(attempt: int, error: ProviderError) -> float | None:
    """Return the seconds to wait before an attempt, counted from 1; None if there is none."""
    if error.kind not in RETRIED or attempt > ATTEMPTS:
        return None
    delay = error.retry_after
    if delay is None:
        return float(_FIRST_DELAY * 2 ** (attempt - 1))
    return max(0.0, delay) if delay <= LONGEST_DELAY else None


class TurnFailed(Exception):
    """The provider gave up, or the turn did not come to an end."""

    def __init__(self, message: str, kind: str = ErrorKind.OTHER) -> None:
        """`kind` is that of the provider's error, or `limit`."""
        super().__init__(message)
        self.kind = kind


async def report_failure(
    writer: BlockWriter, prompt: str, message: str, kind: str | None = None
) -> None:
    """End what is open and say why, where everybody sees it.

    Args:
        kind: of the error, if the turn may be tried again from here.
    """
    await writer.finish_all(Status.ERROR)
    about: dict[str, Any] = {} if kind is None else {ERROR_KIND: kind, CAN_RETRY: True}
    shown = sanitize(message[:_ERROR_CODE_POINTS])
    block = await writer.create(BlockKind.ERROR, prompt, shown, **about)
    await writer.finish(block, Status.ERROR, is_error=True)


def _nothing_came(reason: str | None, number: int) -> ProviderError | None:
    """Return the error of a round without a block; None if the turn may end without a word."""
    if reason == StopReason.TRUNCATED:
        message = "The answer was cut off before it began."
        return ProviderError(message, ErrorKind.UNREACHABLE)
    if reason is not None and reason not in _NATURAL_ENDS:
        return ProviderError(f"The answer ended before it began: {reason}.")
    if reason is not None and number == 0:
        return ProviderError("The model has answered nothing.")
    return None


@dataclass(slots=True)
class _Answer:
    """The answer to one request, as far as it came."""

    read: ReadPrompt
    """The prompt that the model was given."""
    error: ProviderError | None = None
    reason: str | None = None
    usage: TokenUsage | None = None


@dataclass(eq=False)
class Turn(BaseTurn):
    """Plays a provider's rounds until one ends without a tool call."""

    model: AnsweringModel
    reader: PromptReader
    servers: TurnServers
    """MCP servers whose tools it may call."""
    round: int = 0
    """Number of the round that is played, from 0."""
    is_retrying: bool = False
    """Whether it waits until its request is sent again."""
    blocks: RoundBlocks | None = None
    """Those of the round that is played."""
    _used: TokenUsage = field(default_factory=TokenUsage)
    _overflowed: bool = False

    def __post_init__(self) -> None:
        writer = self.writer
        names = tools_of(self.model.config)
        read = self.model.files_read.setdefault(writer.context.id, {})
        self.tools = ModelTools(
            *(writer.kernel, writer.context, self.prompt, names),
            model=writer.actor.principal,
            read=read,
            served=self.servers.tools,
        )
        self.reader.announced = self._announced
        self._began = writer.kernel.clock.now_ms()

    async def play(self, resumed: Sequence[RoundCall] = (), first: int = 0) -> None:
        """Play the turn to its end.

        Args:
            resumed: calls of the round `first` with which it goes on, since they have no result.

        Raises:
            TurnFailed: if the provider gave up. Open blocks are the caller's to finish then, as
                after any other error and after a cancellation.
        """
        if resumed:
            self.round = first
            self.blocks = RoundBlocks(self, calls=list(resumed))
            await self.blocks.answer_calls()
            first += 1
        for number in range(first, self.settings.max_rounds):
            self.round = number
            self.blocks = blocks = RoundBlocks(self)
            self._check_budget()
            await self._round(blocks)
            if not blocks.calls:
                return
            await blocks.answer_calls()
        rounds = self.settings.max_rounds
        raise TurnFailed(f"The turn was stopped after {rounds} rounds of tool calls.", "limit")

    async def _round(self, blocks: RoundBlocks) -> None:
        """Play one round, without the results of its calls."""
        attempts = compactions = 0
        refused: ReadPrompt | None = None
        while True:
            blocks.last = None
            answer = await self._ask(blocks, refused)
            await self._count(answer, blocks)
            error = answer.error
            if error is None:
                await blocks.end_notice()
                self.model.looked[self.writer.context.id] = answer.read.version
                return
            if blocks.has_shown:
                raise TurnFailed(error.message, error.kind)
            await blocks.end_block(error.kind)
            if error.kind is ErrorKind.CONTEXT_TOO_LONG:
                compactions += 1
                if compactions > _COMPACTIONS:
                    raise TurnFailed(error.message, error.kind)
                refused = answer.read
                continue
            attempts += 1
            seconds = delay_before(attempts, error)
            if seconds is None:
                raise TurnFailed(error.message, error.kind)
            self.is_retrying = True
            await blocks.wait_to_retry(attempts, error, seconds)
            self.is_retrying = False

    async def _ask(self, blocks: RoundBlocks, refused: ReadPrompt | None) -> _Answer:
        """Send one request, smaller than one that was refused; write its events into blocks."""
        self.presence.write_in(None)
        answer = _Answer(await self._read(refused))
        request = RoundRequest(self.writer.context.id, self.round, answer.read.prompt)
        async with aclosing(self.model.provider.stream(request)) as answered:
            async for event in answered:
                await blocks.take(event, answer)
                if blocks.last is not None:
                    await blocks.end_notice()
                if answer.error is not None:
                    break
        if answer.error is None:
            if blocks.last is None:
                answer.error = _nothing_came(answer.reason, self.round)
            is_natural = answer.reason is None or answer.reason in _NATURAL_ENDS
            await blocks.end_block(None if is_natural else answer.reason)
        return answer

    async def _read(self, refused: ReadPrompt | None) -> ReadPrompt:
        """Return what the model reads now: all that was written, streams included.

        Raises TurnFailed if it is too long or cannot be read.
        """
        overflowed, self._overflowed = self._overflowed, False
        try:
            if refused is not None:
                return await self.reader.read_smaller(refused)
            if overflowed:
                return await self.reader.read_compacted()
            return await self.reader.read_within()
        except AntiphonError as error:
            raise TurnFailed(error.message, str(error.code)) from error

    def _budgets(self) -> tuple[tuple[float, float | None, str, str], ...]:
        """Return of each budget what is used, the limit, its unit, and how a limit is said."""
        used, limits = self._used, self.settings.limits
        seconds = (self.writer.kernel.clock.now_ms() - self._began) / 1000
        return (
            (used.tokens, limits.max_turn_tokens, "tokens", "its budget of {:,} tokens"),
            (used.cost, limits.max_turn_dollars, "USD", "its budget of ${:g}"),
            (seconds, limits.max_turn_seconds, "s", "its {:g} seconds"),
        )

    def _announced(self, announcement: Announcement) -> Announcement:
        return replace(
            announcement,
            round=self.round + 1,
            max_rounds=self.settings.max_rounds,
            missing=self.servers.missing,
            budget=tuple(
                budget_text(round(used) if unit == "s" else used, limit, unit)
                for used, limit, unit, _ in self._budgets()
                if limit
            ),
        )

    def _check_budget(self) -> None:
        """Raise if the turn has used up what it may use."""
        for used, limit, _, said in self._budgets():
            if limit is not None and used >= limit:
                what = said.format(limit)
                raise TurnFailed(f"The turn was stopped because it has used up {what}.", "limit")

    async def _count(self, answer: _Answer, blocks: RoundBlocks) -> None:
        """Take in what a request has used, as far as its provider says."""
        usage, read, model = answer.usage, answer.read, self.model
        if usage is None:
            return
        used = usage.priced(model.config.price)
        self._used += used
        model.calibration = model.calibration.updated(read.raw_estimate, usage.input_tokens)
        if model.config.window is not None and usage.input_tokens > model.config.window.input:
            self._overflowed = True
        await self.writer.count(used, self.asker.session.principal.id, blocks.last)
