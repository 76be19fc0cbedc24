"""Windows and prices that are published."""

from __future__ import annotations

import pytest

from antiphon_kernel.config import with_known_limits
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ModelConfig, ModelKind, ModelPrice

pytest.importorskip("genai_prices")


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (ModelKind.ANTHROPIC, "claude-sonnet-5-5"),
        (ModelKind.OPENAI, "gpt-6.1-sol"),
        (ModelKind.GOOGLE, "gemini-flash-latest"),
    ],
)
def test_models_of_keys_have_a_published_window_and_price(kind: ModelKind, model: str) -> None:
    known = with_known_limits(ModelConfig("x", kind, model))
    assert known.window is not None and known.window.input > known.window.output > 1_000
    assert known.price is not None and known.price.output > known.price.input > 0
    assert known.price.cached is not None and known.price.cached < known.price.input


def test_configured_values_come_before_published_ones() -> None:
    window, price = ModelWindow(1_000, 100), ModelPrice(7, 8)
    config = ModelConfig("x", ModelKind.OPENAI, "gpt-5", window=window)
    known = with_known_limits(config)
    assert known.window == window and known.price is not None
    full = ModelConfig("x", ModelKind.OPENAI, "gpt-5", window=window, price=price)
    assert with_known_limits(full) is full


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig("x", ModelKind.OPENAI, "nonsense"),
        ModelConfig("x", ModelKind.OPENAI_CHAT, "gpt-5", base_url="http://127.0.0.1:1/v1"),
        ModelConfig("x", ModelKind.LOCAL, "/m.gguf"),
    ],
)
def test_unknown_model_stays_as_it_is(config: ModelConfig) -> None:
    assert with_known_limits(config) == config
