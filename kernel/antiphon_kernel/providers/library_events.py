"""Events of one round, from those of pydantic-ai."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage

from antiphon_kernel.messages import ToolArgumentParseError, parse_arguments
from antiphon_kernel.messages.message import is_blank
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
from antiphon_kernel.providers.model_config import ModelConfig, ModelKind
from antiphon_kernel.providers.signatures import ProviderSignature, SignedPart
from antiphon_kernel.types.frozen_json import thaw

BETWEEN_THOUGHTS: Final = "\n\n"

GENERATED_ID: Final = "pyd_ai_"
"""Beginning of the ids that the library makes up for calls that come without one."""

WINDOW_FULL: Final = "model_context_window_exceeded"
"""Anthropic's stop reason of an answer that the window ended."""


@dataclass(slots=True)
class _OpenCall:
    """A call while it is written."""

    id: str
    name: str
    arguments: str = ""
    is_sent: bool = False


@dataclass(slots=True)
class EventReader:
    """Reader of one stream."""

    config: ModelConfig
    has_content: bool = False
    """Whether anything was yielded that people see."""
    _thoughts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By the library's index, the offsets of the parts of the reasoning that is streamed now."""
    _length: int = 0
    """Characters of that reasoning."""
    _calls: dict[int, _OpenCall] = field(default_factory=dict)

    async def read(self, stream: StreamedResponse) -> AsyncGenerator[TurnEvent, None]:
        """Yield the events of a stream up to its end; what the library raises goes through."""
        async for event in stream:
            for made in self._read(event, stream):
                self.has_content = True
                yield made
        for made in self._finish(stream.get()):
            yield made

    def _read(
        self, event: ModelResponseStreamEvent, stream: StreamedResponse
    ) -> Iterator[TurnEvent]:
        match event:
            case PartStartEvent(index=index, part=ThinkingPart(content=text)):
                self._thoughts[index] = (self._length, self._length)
                yield from self._think(index, text)
            case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=text)):
                yield from self._think(index, text)
            case PartStartEvent(part=TextPart(content=text)) if text:
                yield from self._end_thinking(stream.get)
                yield TextDelta(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                yield from self._end_thinking(stream.get)
                yield TextDelta(text)
            case PartStartEvent(index=index, part=ToolCallPart() as part):
                yield from self._end_thinking(stream.get)
                is_named = not part.tool_call_id.startswith(GENERATED_ID)
                call_id = part.tool_call_id if is_named else f"call-{len(self._calls)}"
                self._calls[index] = call = _OpenCall(call_id, part.tool_name)
                yield ToolCallStart(call.id, call.name)
                yield from self._write(call, part.args)
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta() as delta):
                yield from self._write(self._calls[index], delta.args_delta)
            case PartEndEvent(index=index, part=ToolCallPart() as part, next_part_kind=str()):
                yield from self._end_call(self._calls[index], part)
            case _:
                pass

    def _think(self, index: int, text: str | None) -> Iterator[TurnEvent]:
        if not text:
            return
        start, end = self._thoughts[index]
        if start == end and self._length:
            self._length += len(BETWEEN_THOUGHTS)
            start = self._length
            yield ThinkingDelta(BETWEEN_THOUGHTS)
        self._length += len(text)
        self._thoughts[index] = (start, self._length)
        yield ThinkingDelta(text)

    def _end_thinking(self, so_far: Callable[[], ModelResponse]) -> Iterator[TurnEvent]:
        if not self._thoughts:
            return
        received = so_far().parts
        parts = [
            SignedPart(start, end, part.id, part.signature or None, part.provider_details)
            for index, (start, end) in self._thoughts.items()
            if isinstance(part := received[index], ThinkingPart)
        ]
        signature = self._signature(parts)
        if not self._length and signature is not None:
            yield ThinkingDelta("")
        if self._length or signature is not None:
            yield ThinkingEnd(signature)
        self._thoughts, self._length = {}, 0

    def _signature(self, parts: list[SignedPart]) -> str | None:
        return ProviderSignature(self.config.kind, self.config.model, parts).text()

    def _write(
        self, call: _OpenCall, arguments: str | dict[str, Any] | None
    ) -> Iterator[TurnEvent]:
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            call.arguments += arguments
            yield ToolCallDelta(call.id, arguments)

    def _end_call(
        self, call: _OpenCall, part: ModelResponsePart, *, is_whole: bool = False
    ) -> Iterator[TurnEvent]:
        """Yield a call whose JSON has closed; with `is_whole`, also one of no or of other text."""
        if call.is_sent or (is_blank(call.arguments) and not is_whole):
            return
        arguments: dict[str, Any] | str
        try:
            arguments = thaw(parse_arguments(call.id, call.name, call.arguments))
        except ToolArgumentParseError:
            if not is_whole:
                return
            arguments = call.arguments
        call.is_sent = True
        details = part.provider_details if isinstance(part, ToolCallPart) else None
        signature = self._signature([SignedPart(details=details)])
        yield ToolCallEvent(call.id, call.name, arguments, signature)

    def _finish(self, response: ModelResponse) -> Iterator[TurnEvent]:
        reason = self._stop_reason(response)
        if reason == StopReason.TRUNCATED and not self.has_content:
            message = "The answer ended before anything of it had come."
            yield ProviderError(message, ErrorKind.UNREACHABLE)
            return
        if reason == WINDOW_FULL and not self.has_content:
            message = "The context leaves no room for an answer."
            yield ProviderError(message, ErrorKind.CONTEXT_TOO_LONG)
            return
        if reason != StopReason.TRUNCATED:
            yield from self._end_thinking(lambda: response)
        is_whole = reason in {StopReason.END_TURN, StopReason.TOOL_USE}
        for index, call in self._calls.items():
            yield from self._end_call(call, response.parts[index], is_whole=is_whole)
        if refusal := (response.provider_details or {}).get("refusal"):
            yield TextDelta(refusal)
        if (usage := token_usage(response.usage)) is not None:
            yield usage
        yield End(StopReason.MAX_TOKENS if reason == WINDOW_FULL else reason)

    def _stop_reason(self, response: ModelResponse) -> str:
        details = response.provider_details or {}
        word = details.get("finish_reason")
        # A chat that stops without a reason is reported as one that stopped by itself.
        is_reported = self.config.kind is not ModelKind.OPENAI_CHAT or word or "refusal" in details
        match response.finish_reason if is_reported else None:
            case "stop" | "tool_call":
                return StopReason.TOOL_USE if self._calls else StopReason.END_TURN
            case "content_filter":
                return StopReason.REFUSAL
            case "length" if word != WINDOW_FULL:
                return StopReason.MAX_TOKENS
            case _:
                return str(word).lower() if word else StopReason.TRUNCATED


def token_usage(counted: RequestUsage) -> Usage | None:
    """Return the tokens of a round as far as its provider has counted them."""
    if not (counted.input_tokens or counted.output_tokens):
        return None
    details = counted.details
    return Usage(
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_tokens,
        counted.cache_write_tokens,
        details.get("reasoning_tokens") or details.get("thoughts_tokens") or 0,
    )
