"""Rounds in the terms of pydantic-ai: prompts as its messages, and events from what it answers.

Its models put messages in the form of each service.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
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
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.tools import ToolDefinition as LibraryTool
from pydantic_ai.usage import RequestUsage

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.messages import (
    AssistantMessage,
    InputBlock,
    Message,
    MessageError,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    coalesce,
    parse_arguments,
)
from antiphon_kernel.messages.message import is_blank
from antiphon_kernel.providers import events
from antiphon_kernel.providers.events import ErrorKind, ProviderError, StopReason, TurnEvent
from antiphon_kernel.providers.model_config import ModelConfig, ModelKind, TokenUsage
from antiphon_kernel.providers.provider import ModelPrompt
from antiphon_kernel.types.frozen_json import thaw

TOO_LONG: Final = re.compile(
    "|".join(
        (
            r"prompt is too long",
            r"request_too_large",
            r"input is too long for requested model",
            r"exceeds the context window",
            r"input token count.*exceeds the maximum",
            r"maximum prompt length is \d+",
            r"reduce the length of the messages",
            r"maximum context length is \d+ tokens",
            r"exceeds the limit of \d+",
            r"exceeds the available context size",
            r"greater than the context length",
            r"context window exceeds limit",
            r"exceeded model token limit",
            r"context[_ ]length[_ ]exceeded",
            r"model_context_window_exceeded",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
"""Texts by which services say that a request is larger than the model takes."""

LIMITED: Final = re.compile(
    r"rate.?limit|too many requests|per (minute|min|second|day)\b|output tokens", re.IGNORECASE
)
"""Texts about other limits that may look alike."""

_LOOKED_AT: Final = 4_096
"""Code points of an error's text that such texts are looked for in: the patterns may take time in
proportion to the square of it."""

_KINDS: Final[Sequence[tuple[type[Exception], ErrorKind]]] = (
    (exceptions.ModelQuotaExceededError, ErrorKind.QUOTA),
    (exceptions.ModelRateLimitError, ErrorKind.RATE_LIMITED),
    (exceptions.ModelAuthenticationError, ErrorKind.UNAUTHORISED),
    (exceptions.ModelUnavailableError, ErrorKind.OVERLOADED),
    (exceptions.ModelServerError, ErrorKind.OVERLOADED),
    (exceptions.ModelConnectionError, ErrorKind.UNREACHABLE),
    (exceptions.ModelRequestTimeout, ErrorKind.UNREACHABLE),
    (exceptions.UnexpectedModelBehavior, ErrorKind.UNREACHABLE),
)


def provider_error(error: Exception) -> ProviderError:
    """Return the error of a round that the library has ended with an exception.

    Its text is the provider's: mask the key in it before anybody sees it.
    """
    text = _text(error)
    wait = error.retry_after if isinstance(error, exceptions.ModelAPIError) else None
    return ProviderError(text, _kind(error, text[:_LOOKED_AT]), wait)


def _kind(error: Exception, text: str) -> ErrorKind:
    for kind, found in _KINDS[:2]:
        if isinstance(error, kind):
            return found
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
    is_short = status in {400, 413} and not getattr(error, "body", None)
    if isinstance(error, exceptions.ModelContextWindowExceededError) or is_short:
        return ErrorKind.CONTEXT_TOO_LONG
    if TOO_LONG.search(text) and not LIMITED.search(text):
        return ErrorKind.CONTEXT_TOO_LONG
    for kind, found in _KINDS[2:]:
        if isinstance(error, kind):
            return found
    if status is not None:
        return ErrorKind.OVERLOADED if status >= 500 else ErrorKind.INVALID_REQUEST
    # An event that is no JSON is what is left of one that was cut.
    if isinstance(error.__cause__, ValueError):
        return ErrorKind.UNREACHABLE
    # What the library says of a prompt before it sends it.
    is_refused = isinstance(error, RuntimeError) and not isinstance(error, exceptions.AgentRunError)
    return ErrorKind.INVALID_REQUEST if is_refused else ErrorKind.OTHER


def _text(error: Exception) -> str:
    if isinstance(error, exceptions.ModelConnectionError):
        return f"No answer from the provider: {error.message.rstrip('.')}."
    if not isinstance(error, exceptions.ModelAPIError):
        return f"{type(error).__name__}: {error}"
    said = _said(error.body) or error.message
    code = error.provider_error_code or error.provider_error_type
    about = [str(error.status_code)] if isinstance(error, exceptions.ModelHTTPError) else []
    about += [code] if code and code not in said else []
    return f"The provider answered {', '.join(about) or 'with an error'}: {said}"


def _said(body: object) -> str | None:
    """Return the message in the body of an error."""
    if isinstance(body, list) and body:
        return _said(body[0])
    if not isinstance(body, Mapping):
        return body if isinstance(body, str) and body else None
    message = body.get("message")
    return message if isinstance(message, str) and message else _said(body.get("error"))


EMPTY_RESULT = "(no output)"


@dataclass(frozen=True, slots=True)
class SignedPart:
    """One part of a content block as its provider sent it."""

    start: int = 0
    """Offset in the text of the block."""
    end: int = 0
    id: str | None = None
    signature: str | None = None
    details: Mapping[str, Any] | None = None
    """Data of the provider that goes back unchanged."""


def signature_text(config: ModelConfig, parts: Sequence[SignedPart]) -> str | None:
    """Return the signatures of the parts of a content block as text; None if none is signed.

    They are good for the model that signed them only.
    """
    if not any(one.id or one.signature or one.details for one in parts):
        return None
    said = [
        {key: value for key, value in asdict(one).items() if value is not None} for one in parts
    ]
    value = {"kind": config.kind, "model": config.model, "parts": said}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def signed_parts(config: ModelConfig, signature: str | None) -> Sequence[SignedPart]:
    """Return what a model has signed; nothing of what another one did, or of another form."""
    try:
        value = json.loads(signature or "null")
        is_own = (value["kind"], value["model"]) == (config.kind, config.model)
        return [SignedPart(**part) for part in value["parts"]] if is_own else ()
    except (ValueError, TypeError, KeyError):
        return ()


def request_parameters(prompt: ModelPrompt) -> ModelRequestParameters:
    """Return tools and instructions of a prompt."""
    return ModelRequestParameters(
        function_tools=[
            LibraryTool(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=thaw(tool.parameters),
            )
            for tool in prompt.tools
        ],
        instruction_parts=[InstructionPart(prompt.system)] if prompt.system else None,
    )


def library_messages(
    prompt: ModelPrompt,
    config: ModelConfig,
    provider: str,
    marks: Sequence[BlockPosition] | None = None,
) -> list[ModelMessage]:
    """Return the messages of a prompt.

    Everything between two messages of the model is one request, with all results of a batch.

    Args:
        provider: the library's name of the service, which takes back what it signed.
        marks: content blocks at which the service is to end what it keeps in its cache; None of
            one that has no marks, which is given texts in a row as one.
    """
    mapping = _Mapping(prompt, config, provider, marks is not None)
    marked: dict[int, list[int]] = {}
    for mark in marks or ():
        marked.setdefault(mark.message, []).append(mark.block)
    for index, message in enumerate(prompt.conversation.messages):
        mapping.add(message, marked.get(index, ()))
    return mapping.close()


@dataclass(eq=False, slots=True)
class _Mapping:
    """Messages while they are put together."""

    prompt: ModelPrompt
    config: ModelConfig
    provider: str
    in_pieces: bool
    _now: datetime = field(default_factory=lambda: datetime.now(UTC))
    _names: dict[str, str] = field(default_factory=dict)
    """Names of the tools that were called so far, by the id of the call."""
    _messages: list[ModelMessage] = field(default_factory=list)
    _heard: list[ModelRequestPart] = field(default_factory=list)

    def add(self, message: Message, marked: Sequence[int]) -> None:
        if isinstance(message, AssistantMessage):
            self._flush()
            if parts := self._said(message):
                self._messages.append(
                    ModelResponse(parts=parts, provider_name=self.provider, timestamp=self._now)
                )
            # The mark of a message of the model's is put at its end, where it may be.
            if marked and parts and not isinstance(parts[-1], ThinkingPart):
                self._hear([CachePoint()])
        elif isinstance(message, ToolMessage):
            items = [item for block in message.content if (item := self._item(block)) is not None]
            result = ToolReturnPart(
                self._names.get(message.tool_call_id, "tool"),
                items[0] if len(items) == 1 else items or EMPTY_RESULT,
                message.tool_call_id,
                timestamp=self._now,
                outcome="failed" if message.is_error else "success",
            )
            self._heard.append(result)
            if marked:
                self._hear([CachePoint()])
        else:
            heard: dict[int, UserContent] = {
                at: item
                for at, block in enumerate(message.content)
                if (item := self._item(block)) is not None
            }
            content = coalesce(
                list(heard.values()), self.prompt.conversation.join, in_pieces=self.in_pieces
            )
            for at in sorted(heard.keys() & marked, reverse=True):
                content.insert(list(heard).index(at) + 1, CachePoint())
            if content:
                # One text goes as such: not every server takes a list.
                only = content[0] if len(content) == 1 else None
                self._hear(only if isinstance(only, str) else content)

    def close(self) -> list[ModelMessage]:
        self._flush()
        return self._messages

    def _hear(self, content: str | list[UserContent]) -> None:
        self._heard.append(UserPromptPart(content, timestamp=self._now))

    def _flush(self) -> None:
        if self._heard:
            self._messages.append(ModelRequest(parts=self._heard))
            self._heard = []

    def _said(self, message: AssistantMessage) -> list[ModelResponsePart]:
        parts: list[str | ModelResponsePart] = []
        for block in message.content:
            if isinstance(block, Thinking):
                parts.extend(self._thoughts(block))
            elif isinstance(block, ToolUse):
                parts.append(self._call(block))
            elif isinstance(item := self._item(block), str):
                parts.append(item)
        return [TextPart(part) if isinstance(part, str) else part for part in coalesce(parts)]

    def _call(self, use: ToolUse) -> ToolCallPart:
        self._names[use.id] = use.name
        signed = next(iter(signed_parts(self.config, use.signature)), None)
        return ToolCallPart(
            use.name,
            thaw(use.parameters),
            use.id,
            provider_name=self.provider,
            provider_details=dict(signed.details) if signed and signed.details else None,
        )

    def _thoughts(self, block: Thinking) -> Iterable[ThinkingPart]:
        for one in signed_parts(self.config, block.signature):
            yield ThinkingPart(
                block.text[one.start : one.end],
                id=one.id,
                signature=one.signature,
                provider_name=self.provider,
                provider_details=dict(one.details) if one.details else None,
            )

    def _item(self, block: InputBlock) -> str | BinaryContent | None:
        """Return a content block; None of blank text, which no service takes."""
        if isinstance(block, TextBlock):
            return None if is_blank(block.text) else block.text
        if isinstance(block, UnknownBlock):
            return block.raw.canonical()
        if (data := self.prompt.files.get(block.hash)) is None:
            return f"({block.media_type} that is no longer there)"
        return BinaryContent(data, media_type=block.media_type)


BETWEEN_THOUGHTS: Final = "\n\n"

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
                yield events.TextDelta(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                yield from self._end_thinking(stream.get)
                yield events.TextDelta(text)
            case PartStartEvent(index=index, part=ToolCallPart() as part):
                yield from self._end_thinking(stream.get)
                # Nobody needs the service's own id: calls go back with those of their blocks.
                call = _OpenCall(f"call-{len(self._calls)}", part.tool_name)
                self._calls[index] = call
                yield events.ToolCallStart(call.id, call.name)
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
            yield events.ThinkingDelta(BETWEEN_THOUGHTS)
        self._length += len(text)
        self._thoughts[index] = (start, self._length)
        yield events.ThinkingDelta(text)

    def _end_thinking(self, so_far: Callable[[], ModelResponse]) -> Iterator[TurnEvent]:
        if not self._thoughts:
            return
        received = so_far().parts
        parts = [
            SignedPart(start, end, part.id, part.signature or None, part.provider_details)
            for index, (start, end) in self._thoughts.items()
            if isinstance(part := received[index], ThinkingPart)
        ]
        signature = signature_text(self.config, parts)
        if not self._length and signature is not None:
            yield events.ThinkingDelta("")
        if self._length or signature is not None:
            yield events.ThinkingEnd(signature)
        self._thoughts, self._length = {}, 0

    def _write(
        self, call: _OpenCall, arguments: str | dict[str, Any] | None
    ) -> Iterator[TurnEvent]:
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            call.arguments += arguments
            yield events.ToolCallDelta(call.id, arguments)

    def _end_call(
        self, call: _OpenCall, part: ModelResponsePart, *, is_whole: bool = False
    ) -> Iterator[TurnEvent]:
        """Yield a call whose JSON has closed; with `is_whole`, also one of no or of other text."""
        if call.is_sent or (is_blank(call.arguments) and not is_whole):
            return
        arguments: dict[str, Any] | str
        try:
            arguments = thaw(parse_arguments(call.id, call.name, call.arguments))
        except MessageError:
            if not is_whole:
                return
            arguments = call.arguments
        call.is_sent = True
        details = part.provider_details if isinstance(part, ToolCallPart) else None
        signature = signature_text(self.config, [SignedPart(details=details)])
        yield events.ToolCallEvent(call.id, call.name, arguments, signature)

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
            yield events.TextDelta(refusal)
        if (usage := token_usage(response.usage)) is not None:
            yield usage
        yield events.End(StopReason.MAX_TOKENS if reason == WINDOW_FULL else reason)

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


def token_usage(counted: RequestUsage) -> TokenUsage | None:
    """Return the tokens of a round as far as its provider has counted them."""
    if not (counted.input_tokens or counted.output_tokens):
        return None
    details = counted.details
    return TokenUsage(
        input_tokens=counted.input_tokens,
        cached_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        output_tokens=counted.output_tokens,
        reasoning_tokens=details.get("reasoning_tokens") or details.get("thoughts_tokens") or 0,
    )
