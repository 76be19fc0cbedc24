"""Events of one round of a model, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from antiphon_kernel.providers.model_config import TokenUsage
from antiphon_kernel.types import constants


class StopReason(StrEnum):
    """Reason for the end of a round."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = constants.MAX_TOKENS
    REFUSAL = constants.REFUSED
    TRUNCATED = constants.CUT_OFF
    """The stream ended without its terminator: nothing of it that did not close is complete."""


class ErrorKind(StrEnum):
    """Kind of a provider's error, which decides what the turn does next."""

    CONTEXT_TOO_LONG = "context_too_long"
    """The request is larger than the model takes: the context is compacted and asked again."""
    RATE_LIMITED = "rate_limited"
    """Asked again after the delay that the provider names."""
    OVERLOADED = "overloaded"
    """Overloaded, or a failure on the server's side: asked again."""
    UNREACHABLE = "unreachable"
    """No connection, silence for too long, or a connection that was cut: asked again."""
    QUOTA = "quota"
    """No credit is left: asking again does not help."""
    UNAUTHORISED = "unauthorised"
    """The key is missing or wrong."""
    INVALID_REQUEST = "invalid_request"
    """The provider refuses the request as it is."""
    NOT_INSTALLED = "not_installed"
    """The library of this kind of model is missing; the message says which line installs it."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingEnd:
    """The reasoning that was streamed last is whole."""

    signature: str | None = None
    """The provider's, over exactly the text that was streamed; sent back with it unchanged."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The model has begun to write a call; it is not run before its `ToolCallEvent`."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the arguments of a call that has begun, as JSON text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A whole call of a tool; its result is part of the next round's request."""

    id: str
    name: str
    input: Mapping[str, Any] | str
    """Arguments; the raw text where that is not a JSON object."""
    signature: str | None = None
    """Anything of the provider's that has to come back with the call, as text."""


@dataclass(frozen=True, slots=True)
class End:
    """The round is over; without a tool call in it, so is the turn."""

    stop_reason: str
    """A `StopReason`, or a word of the provider's own."""


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The provider gave up; nothing follows."""

    message: str
    kind: ErrorKind = ErrorKind.OTHER
    retry_after: float | None = None
    """Seconds after which the provider may be asked again, if it says so."""


TurnEvent = (
    ThinkingDelta
    | ThinkingEnd
    | TextDelta
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEvent
    | TokenUsage
    | End
    | ProviderError
)
"""Of several usages the last one counts, and no price is known yet."""
