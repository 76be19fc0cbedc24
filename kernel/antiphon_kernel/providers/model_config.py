"""Configuration of one model: kind, address, key, limits and price."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from antiphon_kernel.messages import ModelWindow


class ModelKind(StrEnum):
    """Kind of a model: the wire format that it is asked in."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """OpenAI's Responses."""
    OPENAI_CHAT = "openai-chat"
    """Chat Completions, of any compatible server."""
    GOOGLE = "google"
    LOCAL = "local"
    """A GGUF file, served by a child process of the kernel."""
    SCRIPTED = "scripted"
    """Recordings that are played."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a provider; its value is in no representation."""

    value: str = field(repr=False)
    source: str
    """Place that the key comes from, for people: `$OPENAI_API_KEY`, or a file's path."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Price of a model in US dollars for a million tokens."""

    input: float
    """Of a request."""
    output: float
    """Of an answer."""
    cached: float | None = None
    """Of input that is read from the cache; as other input if absent."""
    cache_write: float | None = None
    """Of input that is written to the cache; as other input if absent."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model that people can ask."""

    name: str
    """Name in messages, after `@`."""
    kind: ModelKind
    model: str
    """The provider's own name of it; of a local model the path of its file."""
    base_url: str | None = None
    """Address of the server; the provider's own if absent."""
    key: ApiKey | None = None
    window: ModelWindow | None = None
    """Limits in tokens; those that are known of the model if absent."""
    max_tokens: int | None = None
    """Most tokens of one answer."""
    thinking: int | None = None
    """Tokens of an answer that may be reasoning; 0 for none, the provider's default if absent."""
    system: str = ""
    """Instructions of the owner, behind the built-in ones."""
    tools: tuple[str, ...] | None = None
    """Names of the tools it may call; those that its window has room for if absent."""
    price: ModelPrice | None = None
    """Price; the published one if absent, where it is known."""
