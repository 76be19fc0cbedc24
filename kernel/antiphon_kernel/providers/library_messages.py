"""Prompts as the messages of pydantic-ai, whose models put them in the form of each service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition as LibraryTool

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.messages import (
    AssistantMessage,
    InputBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    coalesce,
)
from antiphon_kernel.messages.message import is_blank
from antiphon_kernel.providers.model_config import ModelConfig
from antiphon_kernel.providers.provider import ModelPrompt
from antiphon_kernel.providers.signatures import ProviderSignature, SignedPart
from antiphon_kernel.types.frozen_json import thaw

EMPTY_RESULT = "(no output)"


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
            self._heard.append(self._result(message))
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
        signed = next(iter(self._signed(use.signature)), None)
        return ToolCallPart(
            use.name,
            thaw(use.parameters),
            use.id,
            provider_name=self.provider,
            provider_details=dict(signed.details) if signed and signed.details else None,
        )

    def _thoughts(self, block: Thinking) -> Iterable[ThinkingPart]:
        for one in self._signed(block.signature):
            yield ThinkingPart(
                block.text[one.start : one.end],
                id=one.id,
                signature=one.signature,
                provider_name=self.provider,
                provider_details=dict(one.details) if one.details else None,
            )

    def _signed(self, signature: str | None) -> Sequence[SignedPart]:
        """Return what the model signed; nothing of what another one did."""
        signed = ProviderSignature.parse(signature)
        model = (self.config.kind, self.config.model)
        return signed.parts if signed is not None and (signed.kind, signed.model) == model else ()

    def _result(self, message: ToolMessage) -> ToolReturnPart:
        items = [item for block in message.content if (item := self._item(block)) is not None]
        content = items[0] if len(items) == 1 else items or EMPTY_RESULT
        return ToolReturnPart(
            self._names.get(message.tool_call_id, "tool"),
            content,
            message.tool_call_id,
            timestamp=self._now,
            outcome="failed" if message.is_error else "success",
        )

    def _item(self, block: InputBlock) -> str | BinaryContent | None:
        """Return a content block; None of blank text, which no service takes."""
        if isinstance(block, TextBlock):
            return None if is_blank(block.text) else block.text
        if isinstance(block, UnknownBlock):
            return block.raw.canonical()
        if (file := self.prompt.files.get(block.hash)) is None:
            return f"({block.media_type} that is no longer there)"
        return BinaryContent(file.data, media_type=file.media_type)
