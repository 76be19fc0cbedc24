"""Windows and prices of models that are published, from the library that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ModelConfig, ModelKind, ModelPrice

_PROVIDERS: Final[Mapping[ModelKind, str]] = {
    ModelKind.ANTHROPIC: "anthropic",
    ModelKind.OPENAI: "openai",
    ModelKind.OPENAI_CHAT: "openai",
    ModelKind.GOOGLE: "google",
}

_LARGE: Final = 400_000
"""Tokens of a window whose models give long answers."""

_LONG_ANSWER: Final = 32_000


def with_known_limits(config: ModelConfig) -> ModelConfig:
    """Return a configuration with the window and price that are published, where it has none.

    The library is imported here, which takes a moment, and may be missing.
    """
    if config.window is not None and config.price is not None:
        return config
    known = _find(config.kind, config.model, config.base_url)
    if known is None:
        return config
    return replace(
        config,
        window=config.window or _window(known.context_window),
        price=config.price or _price(known.get_prices(datetime.now(UTC))),
    )


@lru_cache(maxsize=256)
def _find(kind: ModelKind, model: str, base_url: str | None) -> Any | None:
    """Return the library's entry of a model; None if it has none."""
    if kind not in _PROVIDERS:
        return None
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    provider = _PROVIDERS[kind] if base_url is None else None
    try:
        return get_snapshot().find_provider_model(model, None, provider, base_url)[1]
    except LookupError:
        return None


def _window(tokens: int | None) -> ModelWindow | None:
    """Return the window of so many tokens; the library does not know how long answers may be."""
    if tokens is None:
        return None
    answer = _LONG_ANSWER if tokens >= _LARGE else ModelWindow().output
    return ModelWindow(input=tokens, output=min(tokens, answer))


def _price(known: Any) -> ModelPrice | None:
    given = _dollars(known.input_mtok), _dollars(known.output_mtok)
    if given[0] is None or given[1] is None:
        return None
    return ModelPrice(
        input=given[0],
        output=given[1],
        cached=_dollars(known.cache_read_mtok),
        cache_write=_dollars(known.cache_write_mtok),
    )


def _dollars(amount: Any) -> float | None:
    """Return a price; of one that depends on the length of the request, that of short ones."""
    return None if amount is None else float(getattr(amount, "base", amount))
