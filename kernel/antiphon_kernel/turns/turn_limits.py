"""Limits of a turn: rounds, budget, and what its tools may take."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon_kernel.config import KernelConfig
from antiphon_kernel.turns.shell_call import OUTPUT_LIMIT

MAX_ROUNDS = 100
"""A turn that calls tools more often than this is stopped."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Most that one turn may take; None where there is no such limit."""

    max_rounds: int = MAX_ROUNDS
    request_tokens: int | None = None
    """Tokens of a request beyond which the context is compacted."""
    tokens: int | None = None
    """Tokens of all its requests and answers."""
    money: float | None = None
    """US dollars."""
    seconds: float | None = None
    """Seconds from its beginning; no round begins after them."""
    tool_seconds: float = 60.0
    """Seconds that a tool may run."""
    shell_seconds: float = 600.0
    """Seconds that a command may run."""
    output_code_points: int = OUTPUT_LIMIT
    """Most of a result that is kept in its block."""

    @classmethod
    def of(cls, config: KernelConfig) -> TurnLimits:
        """Return the limits that are configured."""
        return cls(
            max_rounds=config.max_rounds or MAX_ROUNDS,
            request_tokens=config.budget,
            tokens=config.max_turn_tokens,
            money=config.max_turn_dollars,
            seconds=config.max_turn_seconds,
        )
