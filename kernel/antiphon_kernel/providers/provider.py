"""Provider of a model: anything that can stream one round after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from antiphon_kernel.layout import ModelRequest
from antiphon_kernel.providers.events import TurnEvent
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import ContextId


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model is told of it."""

    name: str
    """Letters, digits and `_`."""
    description: str
    parameters: JsonObject
    """JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """Everything that one request to a model is made of; equal prompts give equal requests."""

    conversation: ModelRequest = field(default_factory=ModelRequest)
    """Messages, and the content blocks that are marked for the cache."""
    system: str = ""
    """Instructions before the messages."""
    tools: tuple[ToolDefinition, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """By SHA-256, every image and document that a message names."""
    max_tokens: int = 1


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """One round of a turn: round 0 answers the prompt, later ones the results of tool calls."""

    context_id: ContextId
    round: int
    prompt: ModelPrompt
    """The whole prompt, with the conversation as it is now."""


class Provider(Protocol):
    """A source of turns. Turns of one provider in one context come one after the other."""

    def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        """The events of one round; closing the generator stops the round.

        A failure is a `ProviderError` event, never an exception, and it is asked once only: asking
        again is the turn's to decide.
        """
        ...


@runtime_checkable
class RemoteProvider(Provider, Protocol):
    """A provider that sends requests to a server."""

    async def payload(self, prompt: ModelPrompt) -> JsonObject:
        """Return the JSON body that would be sent for a prompt; sends nothing, holds no key."""
        ...

    async def close(self) -> None:
        """Close connections and end child processes."""
        ...
