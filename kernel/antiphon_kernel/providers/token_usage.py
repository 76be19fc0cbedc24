"""Tokens and money that models have used: of a round, of a turn, of a context."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from antiphon_kernel.providers.events import Usage
from antiphon_kernel.providers.model_config import ModelPrice

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as providers count them, and their price where it is known."""

    requests: int = 0
    """How many there were."""
    input_tokens: int = 0
    """All of the requests, cached ones included."""
    cached_tokens: int = 0
    """Of the input, those read from a provider's cache."""
    cache_write_tokens: int = 0
    """Of the input, those written to a provider's cache."""
    output_tokens: int = 0
    """All of the answers, reasoning included."""
    reasoning_tokens: int = 0
    """Of the output, those of reasoning."""
    cost: float = 0.0
    """US dollars."""
    unpriced: int = 0
    """Requests whose price is not known, which `cost` leaves out."""

    @classmethod
    def of(cls, usage: Usage, price: ModelPrice | None) -> TokenUsage:
        """Return what one request has used."""
        return cls(
            1,
            usage.input_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
            _cost(usage, price) if price is not None else 0.0,
            0 if price is not None else 1,
        )

    def __add__(self, other: TokenUsage) -> TokenUsage:
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)
        }
        return TokenUsage(**sums)

    @property
    def tokens(self) -> int:
        """Return the tokens of requests and answers together."""
        return self.input_tokens + self.output_tokens

    def as_json(self) -> dict[str, Any]:
        """Return its fields that say something."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def parse(cls, stored: str) -> TokenUsage:
        """Read what `as_json` gave; what cannot be read counts as nothing."""
        try:
            found = json.loads(stored)
        except ValueError:
            return cls()
        if not isinstance(found, dict):
            return cls()
        known: dict[str, Any] = {one.name: found.get(one.name) for one in fields(cls)}
        return cls(**{name: one for name, one in known.items() if type(one) in (int, float)})


def _cost(usage: Usage, price: ModelPrice) -> float:
    cached = price.cached if price.cached is not None else price.input
    written = price.cache_write if price.cache_write is not None else price.input
    plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
    dollars = (
        max(0, plain) * price.input
        + usage.cached_tokens * cached
        + usage.cache_write_tokens * written
        + usage.output_tokens * price.output
    )
    return dollars / _MILLION
