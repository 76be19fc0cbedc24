"""Events of one round of a model, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """The model asks for a tool to be run; its result is part of the next round's request."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of this round, as the provider counts them."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class End:
    """The round is over; without a tool call in it, so is the turn."""

    stop_reason: str


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The provider gave up; nothing follows."""

    message: str


TurnEvent = ThinkingDelta | TextDelta | ToolCallEvent | Usage | End | ProviderError
