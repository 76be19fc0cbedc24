"""Prompts as the messages of pydantic-ai, whose models put them in the form of each service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    tool_uses,
)
from antiphon_kernel.messages.blocks import is_blank
from antiphon_kernel.providers.model_config import ModelConfig
from antiphon_kernel.providers.provider import ModelPrompt, PromptFile
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
    prompt: ModelPrompt, config: ModelConfig, provider: str, marks: Sequence[BlockPosition] = ()
) -> list[ModelMessage]:
    """Return the messages of a prompt.

    Everything between two messages of the model is one request, with all results of a batch.

    Args:
        provider: the library's name of the service, which takes back what it signed.
        marks: content blocks at which the service is to end what it keeps in its cache.
    """
    mapping = _Mapping(prompt.files, config, provider, _names(prompt.conversation.messages))
    for index, message in enumerate(prompt.conversation.messages):
        mapping.add(message, [mark.block for mark in marks if mark.message == index])
    return mapping.close()


def _names(messages: Iterable[Message]) -> dict[str, str]:
    return {use.id: use.name for message in messages for use in tool_uses(message)}


class _Mapping:
    """Messages while they are put together."""

    def __init__(
        self,
        files: Mapping[str, PromptFile],
        config: ModelConfig,
        provider: str,
        names: Mapping[str, str],
    ) -> None:
        self._files = files
        self._config = config
        self._provider = provider
        self._names = names
        self._messages: list[ModelMessage] = []
        self._heard: list[ModelRequestPart] = []

    def add(self, message: Message, marked: Sequence[int]) -> None:
        match message:
            case AssistantMessage():
                self._flush()
                if parts := list(self._said(message)):
                    name = self._provider
                    self._messages.append(ModelResponse(parts=parts, provider_name=name))
                # The mark of a message of the model's is put at its end, where it may be.
                if marked and parts and not isinstance(parts[-1], ThinkingPart):
                    self._heard.append(UserPromptPart(content=[CachePoint()]))
            case ToolMessage():
                self._heard.append(self._result(message))
                if marked:
                    self._heard.append(UserPromptPart(content=[CachePoint()]))
            case UserMessage():
                content: list[UserContent] = []
                for at, block in enumerate(message.content):
                    if (item := self._item(block)) is None:
                        continue
                    content.append(item)
                    if at in marked:
                        content.append(CachePoint())
                if content:
                    # One text goes as such: not every server takes a list.
                    only = content[0] if len(content) == 1 else None
                    text = only if isinstance(only, str) else None
                    self._heard.append(UserPromptPart(content if text is None else text))

    def close(self) -> list[ModelMessage]:
        self._flush()
        return self._messages

    def _flush(self) -> None:
        if self._heard:
            self._messages.append(ModelRequest(parts=self._heard))
            self._heard = []

    def _said(self, message: AssistantMessage) -> Iterable[ModelResponsePart]:
        for block in message.content:
            match block:
                case TextBlock(text) if not is_blank(text):
                    yield TextPart(text)
                case Thinking():
                    yield from self._thoughts(block)
                case ToolUse(id, name, parameters, signature):
                    signed = next(iter(self._signed(signature)), SignedPart())
                    yield ToolCallPart(
                        name,
                        thaw(parameters),
                        id,
                        provider_name=self._provider,
                        provider_details=dict(signed.details) if signed.details else None,
                    )
                case _:
                    if isinstance(item := self._item(block), str):
                        yield TextPart(item)

    def _thoughts(self, block: Thinking) -> Iterable[ThinkingPart]:
        for one in self._signed(block.signature):
            yield ThinkingPart(
                block.text[one.start : one.end],
                id=one.id,
                signature=one.signature,
                provider_name=self._provider,
                provider_details=dict(one.details) if one.details else None,
            )

    def _signed(self, signature: str | None) -> Sequence[SignedPart]:
        """Return what the model signed; nothing of what another one did."""
        signed = ProviderSignature.parse(signature)
        model = (self._config.kind, self._config.model)
        return signed.parts if signed is not None and (signed.kind, signed.model) == model else ()

    def _result(self, message: ToolMessage) -> ToolReturnPart:
        items = [item for block in message.content if (item := self._item(block)) is not None]
        content = items[0] if len(items) == 1 else items or EMPTY_RESULT
        return ToolReturnPart(
            self._names.get(message.tool_call_id, "tool"),
            content,
            message.tool_call_id,
            outcome="failed" if message.is_error else "success",
        )

    def _item(self, block: InputBlock) -> str | BinaryContent | None:
        """Return a content block; None of blank text, which no service takes."""
        match block:
            case TextBlock(text):
                return None if is_blank(text) else text
            case ImageBlock(media_type, digest) | DocumentBlock(media_type, digest):
                if (file := self._files.get(digest)) is None:
                    return f"({media_type} that is no longer there)"
                return BinaryContent(file.data, media_type=file.media_type)
            case _:
                return block.raw.canonical()
