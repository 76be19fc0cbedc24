"""Models that are asked at a wire server, and their events in a form that compares well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from antiphon_kernel.layout import BlockPosition, ModelRequest
from antiphon_kernel.messages import Message, TextBlock, UserMessage
from antiphon_kernel.providers import (
    ApiKey,
    ModelConfig,
    ModelKind,
    ModelPrompt,
    RemoteProvider,
    RoundRequest,
    TextDelta,
    TokenUsage,
    ToolDefinition,
)
from antiphon_kernel.providers.events import ThinkingDelta, ToolCallDelta, TurnEvent
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import ContextId
from tests.wire.server import WireServer

KEY = "sk-very-secret"

MODELS = {
    ModelKind.ANTHROPIC: "claude-haiku-4-5",
    ModelKind.OPENAI: "gpt-5",
    ModelKind.OPENAI_CHAT: "qwen3",
    ModelKind.GOOGLE: "gemini-3-pro-preview",
}

SHELL = ToolDefinition(
    "shell",
    "Run a command.",
    JsonObject(
        {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        }
    ),
)


def config_at(server: WireServer, kind: ModelKind, **fields: Any) -> ModelConfig:
    """Return the configuration of a model that a wire server answers for."""
    config = ModelConfig("aria", kind, MODELS[kind], base_url=server.base_url(kind))
    return replace(config, **{"key": ApiKey(KEY, "$TEST_KEY"), **fields})


def prompt_of(
    *messages: Message,
    marks: Sequence[BlockPosition] = (),
    system: str = "You are Aria.",
    tools: tuple[ToolDefinition, ...] = (SHELL,),
    **fields: Any,
) -> ModelPrompt:
    """Return a prompt of messages; of one that says hello, without any."""
    heard = messages or (UserMessage((TextBlock("Hello"),)),)
    fields = {"max_tokens": 4096, **fields}
    return ModelPrompt(ModelRequest(heard, tuple(marks)), system, tools, **fields)


def asking(prompt: ModelPrompt) -> RoundRequest:
    """Return a round with a prompt."""
    return RoundRequest(ContextId("ctx_test"), 0, prompt)


async def ask(provider: RemoteProvider, prompt: ModelPrompt | None = None) -> list[TurnEvent]:
    """Return the events of one round."""
    async with aclosing(provider.stream(asking(prompt or prompt_of()))) as events:
        return [event async for event in events]


def joined(events: Iterable[TurnEvent]) -> list[TurnEvent]:
    """Return events with deltas of one kind in a row as one, and without token counts."""
    made: list[TurnEvent] = []
    for event in events:
        match (made[-1] if made else None, event):
            case (_, TokenUsage()):
                pass
            case (TextDelta(before), TextDelta(text)):
                made[-1] = TextDelta(before + text)
            case (ThinkingDelta(before), ThinkingDelta(text)):
                made[-1] = ThinkingDelta(before + text)
            case (ToolCallDelta(id, before), ToolCallDelta(same, text)) if id == same:
                made[-1] = ToolCallDelta(id, before + text)
            case _:
                made.append(event)
    return made
