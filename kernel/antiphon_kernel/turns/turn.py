"""One turn of one model: rounds of text and tool calls, written into blocks as they come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.conversation import layout_of
from antiphon_kernel.layout import Announcement, budget_text
from antiphon_kernel.providers.events import (
    End,
    ErrorKind,
    ProviderError,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEvent,
    ToolCallStart,
    TurnEvent,
    Usage,
)
from antiphon_kernel.providers.provider import ModelPrompt, RoundRequest
from antiphon_kernel.providers.token_usage import TokenUsage
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.model_tools import ModelTools, tools_of
from antiphon_kernel.turns.permission import PermissionDesk
from antiphon_kernel.turns.prompt_reading import AnsweringModel, PromptReader, ReadPrompt
from antiphon_kernel.turns.round_blocks import (
    ATTEMPTS,
    RoundBlocks,
    RoundCall,
    TurnSettings,
    one_line,
)
from antiphon_kernel.types.block_metadata import CAN_RETRY, ERROR_KIND, USAGE
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError

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
    block = await writer.create(BlockKind.ERROR, prompt, _readable(message), **about)
    await writer.finish(block, Status.ERROR, is_error=True)


def _readable(message: str) -> str:
    """Return the beginning of an error's message as a block can hold it."""
    return sanitize(message[:_ERROR_CODE_POINTS])


def _nothing_came(reason: str | None, number: int) -> ProviderError | None:
    """Return the error of an answer without a block; None if the turn may end without a word.

    Args:
        number: of the round, from 0.
    """
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
    """The answer of one request, as far as it came."""

    error: ProviderError | None = None
    reason: str | None = None
    usage: Usage | None = None


async def _take(event: TurnEvent, answer: _Answer, blocks: RoundBlocks) -> None:
    match event:
        case ThinkingDelta(text):
            await blocks.think(text)
        case ThinkingEnd(signature):
            await blocks.end_thinking(signature)
        case TextDelta(text):
            await blocks.say(text)
        case ToolCallStart(call_id, name):
            await blocks.begin_call(call_id, name)
        case ToolCallDelta(call_id, text):
            await blocks.write_arguments(call_id, text)
        case ToolCallEvent():
            await blocks.end_call(event)
        case Usage():
            answer.usage = event
        case End(reason):
            answer.reason = one_line(reason)
        case ProviderError():
            answer.error = replace(event, message=_readable(event.message))


@dataclass(eq=False)
class Turn:
    """Plays a provider's rounds until one ends without a tool call."""

    model: AnsweringModel
    writer: BlockWriter
    presence: WriterPresence
    prompt: str
    asker: Asker
    """Principal with whose rights tools run."""
    desk: PermissionDesk
    """Decides whether calls may run."""
    settings: TurnSettings
    make_reader: Callable[[], Awaitable[PromptReader]]
    """Called when the model reads the context for the first time."""
    round: int = 0
    """Number of the round that is played, from 0."""
    is_retrying: bool = False
    """Whether it waits until its request is sent again."""
    blocks: RoundBlocks | None = None
    """Those of the round that is played."""
    _reader: PromptReader | None = None
    _taken: set[str] | None = None
    _used: TokenUsage = field(default_factory=TokenUsage)
    _refused: ReadPrompt | None = None
    _overflowed: bool = False
    _read_last: ReadPrompt | None = None
    _failure: AntiphonError | None = None

    def __post_init__(self) -> None:
        writer = self.writer
        self._tools = ModelTools(
            writer.kernel, writer.context, self.prompt, tools_of(self.model.config)
        )
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
            await self._begin_round(first, resumed).answer_calls()
            first += 1
        for number in range(first, self.settings.max_rounds):
            blocks = self._begin_round(number)
            self._check_budget()
            await self._round(blocks)
            if not blocks.calls:
                return
            await blocks.answer_calls()
        rounds = self.settings.max_rounds
        raise TurnFailed(f"The turn was stopped after {rounds} rounds of tool calls.", "limit")

    def _begin_round(self, number: int, calls: Sequence[RoundCall] = ()) -> RoundBlocks:
        self.round = number
        self.blocks = RoundBlocks(
            self.writer,
            self.presence,
            self.asker,
            self.prompt,
            number,
            self._tools,
            self.desk,
            self.settings,
            self._call_ids,
            list(calls),
        )
        return self.blocks

    async def _round(self, blocks: RoundBlocks) -> None:
        """Play one round, without the results of its calls."""
        attempts = compactions = 0
        while True:
            self._failure, blocks.last = None, None
            request = RoundRequest(self.writer.context.id, blocks.number, self._read)
            answer = await self._ask(request, blocks)
            await self._count(answer, blocks)
            error = answer.error
            if error is None:
                await blocks.end_notice()
                if self._read_last is not None:  # the model has read what it was given
                    self.model.looked[self.writer.context.id] = self._read_last.version
                return
            if blocks.has_shown:
                raise TurnFailed(error.message, error.kind)
            await blocks.end_block(error.kind)
            if error.kind is ErrorKind.CONTEXT_TOO_LONG and self._read_last is not None:
                compactions += 1
                if compactions > _COMPACTIONS:
                    raise TurnFailed(error.message, error.kind)
                self._refused = self._read_last
                continue
            attempts += 1
            seconds = delay_before(attempts, error)
            if seconds is None:
                raise TurnFailed(error.message, error.kind)
            self.is_retrying = True
            await blocks.wait_to_retry(attempts, error, seconds)
            self.is_retrying = False

    async def _ask(self, request: RoundRequest, blocks: RoundBlocks) -> _Answer:
        """Send one request and write its events into blocks."""
        self.presence.write_in(None)
        answer = _Answer()
        try:
            async with aclosing(self.model.provider.stream(request)) as events:
                async for event in events:
                    await _take(event, answer, blocks)
                    if blocks.last is not None:
                        await blocks.end_notice()
                    if answer.error is not None:
                        break
        except Exception:
            if self._failure is None:
                raise
        if self._failure is not None:
            raise TurnFailed(self._failure.message, str(self._failure.code))
        if answer.error is None:
            if blocks.last is None:
                answer.error = _nothing_came(answer.reason, request.round)
            is_natural = answer.reason is None or answer.reason in _NATURAL_ENDS
            await blocks.end_block(None if is_natural else answer.reason)
        return answer

    async def _read(self) -> ModelPrompt:
        """Return what the model reads now: all that was written, streams included."""
        try:
            reader = self._reader
            if reader is None:
                reader = self._reader = await self.make_reader()
                reader.announced = self._announced
            if self._refused is not None:
                read = await reader.read_smaller(self._refused)
                self._refused = None
            elif self._overflowed and self._read_last is not None:
                read = await reader.read_compacted()
            else:
                read = await reader.read_within()
        except AntiphonError as error:
            # A provider may take it for an error of its own.
            self._failure = error
            raise
        self._read_last, self._overflowed = read, False
        return read.prompt

    def _announced(self, announcement: Announcement) -> Announcement:
        used, limits = self._used, self.settings
        seconds = (self.writer.kernel.clock.now_ms() - self._began) / 1000
        shares = (
            (used.tokens, limits.tokens, "tokens"),
            (used.cost, limits.money, "USD"),
            (round(seconds), limits.seconds, "s"),
        )
        return replace(
            announcement,
            round=self.round + 1,
            max_rounds=limits.max_rounds,
            budget=tuple(budget_text(one, most, unit) for one, most, unit in shares if most),
        )

    def _check_budget(self) -> None:
        """Raise if the turn has used up what it may use."""
        used, limits = self._used, self.settings
        seconds = (self.writer.kernel.clock.now_ms() - self._began) / 1000
        if limits.tokens is not None and used.tokens >= limits.tokens:
            said = f"its budget of {limits.tokens:,} tokens"
        elif limits.money is not None and used.cost >= limits.money:
            said = f"its budget of ${limits.money:g}"
        elif limits.seconds is not None and seconds >= limits.seconds:
            said = f"its {limits.seconds:g} seconds"
        else:
            return
        raise TurnFailed(f"The turn was stopped because it has used up {said}.", "limit")

    async def _count(self, answer: _Answer, blocks: RoundBlocks) -> None:
        """Take in what a request has used, as far as its provider says."""
        usage, read, model = answer.usage, self._read_last, self.model
        if usage is None:
            return
        config = model.config
        used = TokenUsage.of(usage, config.price if config is not None else None)
        self._used += used
        if read is not None:
            model.calibration = model.calibration.updated(read.raw_estimate, usage.input_tokens)
            reader = self._reader
            window = reader.window if reader is not None else None
            if window is not None and usage.input_tokens > window.input:
                self._overflowed = True
        if blocks.last is not None:
            self.writer.describe(blocks.last, metadata={USAGE: used.as_json()})
        writer, asker = self.writer, self.asker.session.principal.id
        await writer.kernel.usage.add(writer.context.id, writer.actor.principal.id, asker, used)

    def _call_ids(self) -> set[str]:
        """Return the ids of all calls of the context; read when the first call comes."""
        if self._taken is None:
            turns = layout_of(self.writer.context).arranged().turns
            ids = {block.tool_call_id for turn in turns for block in turn.blocks}
            self._taken = {one for one in ids if one is not None}
        return self._taken
