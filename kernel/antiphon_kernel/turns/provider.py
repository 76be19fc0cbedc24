"""Provider of a model: anything that can stream one round after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from antiphon_kernel.layout import ModelRequest
from antiphon_kernel.turns.events import TurnEvent
from antiphon_kernel.types.ids import ContextId


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Result of one tool call of the round before."""

    call_id: str
    output: str
    is_error: bool
    exit_code: int | None = None
    truncated: bool = False


async def _read_nothing() -> ModelRequest:
    return ModelRequest()


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """One round of a turn: round 0 answers the prompt, later ones the results of tool calls."""

    context_id: ContextId
    prompt: str
    round: int
    results: tuple[ToolOutcome, ...] = ()
    read: Callable[[], Awaitable[ModelRequest]] = _read_nothing
    """Returns the messages of the whole conversation, as they are at that moment."""


class Provider(Protocol):
    """A source of turns. Turns of one provider in one context come one after the other."""

    def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        """The events of one round; closing the generator stops the round."""
        ...
