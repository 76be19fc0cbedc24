"""Models that no file names, and what is published of models.

Servers of models on this machine are asked which they have, on the loopback interface; windows and
prices come from the library that keeps them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ModelConfig, ModelKind, ModelPrice
from antiphon_kernel.providers.model_config import SERVICES
from antiphon_kernel.types.ids import NAME_LENGTH, SYSTEM_NAME

ANSWER_SECONDS: Final = 1.0
"""Time that a server has for its whole answer."""

_MAX_BYTES: Final = 262_144

_MAX_MODELS: Final = 20
"""Models of one server."""

_HOST: Final = "127.0.0.1"


async def find_local_models(ports: Iterable[int]) -> list[ModelConfig]:
    """Return the models of the servers that answer on ports of the loopback interface.

    Several may have one name.
    """
    found = await asyncio.gather(*map(_models_of, ports))
    return [model for of_server in found for model in of_server]


async def _models_of(port: int) -> list[ModelConfig]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = json.loads(await _get(port, "/v1/models"))
    except (OSError, TimeoutError, ValueError, RecursionError):
        return []
    return list(_listed(answer, f"http://{_HOST}:{port}/v1"))[:_MAX_MODELS]


async def _get(port: int, path: str) -> bytes:
    """Return the body of an answer 200; raises OSError or ValueError for any other."""
    reading, writing = await asyncio.open_connection(_HOST, port)
    try:
        # Of this version: the answer ends with the connection, and comes in one piece.
        request = f"GET {path} HTTP/1.0\r\nHost: {_HOST}:{port}\r\nAccept: application/json\r\n\r\n"
        writing.write(request.encode("ascii"))
        data = bytearray()
        while piece := await reading.read(_MAX_BYTES):
            data += piece
            if len(data) > _MAX_BYTES:
                raise ValueError("the answer is too long")
    finally:
        writing.close()
        with suppress(OSError):
            await writing.wait_closed()
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    if not re.match(rb"HTTP/1\.[01] 200\b", head):
        raise ValueError("no answer 200")
    return body


def _listed(answer: Any, base_url: str) -> Iterator[ModelConfig]:
    entries = answer.get("data") if isinstance(answer, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        model = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(model, str) or not model.isprintable() or "embed" in model:
            continue
        name = mentionable(model)
        if name is not None:
            yield ModelConfig(
                name, ModelKind.OPENAI_CHAT, model, base_url=base_url, window=_window(entry)
            )


def _window(entry: dict[str, Any]) -> ModelWindow | None:
    """Return the window that vLLM and llama.cpp tell."""
    meta = entry.get("meta")
    told = entry.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, dict) else None
    tokens = next((one for one in told if type(one) is int and 0 < one < 10**9), None)
    return ModelWindow(input=tokens, output=tokens) if tokens is not None else None


def mentionable(model: str) -> str | None:
    """Return a name for messages that is like a server's own; None if nothing is left of it.

    Of a path only the end counts, without what says how the file is stored.
    """
    stem = model.rstrip("/").rpartition("/")[2].lower()
    stem = stem.removesuffix(".gguf").removesuffix(":latest")
    name = re.sub(r"[^a-z0-9_-]+", "-", stem).strip("-_")[:NAME_LENGTH].rstrip("-_")
    return name if name and name != SYSTEM_NAME else None


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
    price = config.price
    if price is None:
        prices = known.get_prices(datetime.now(UTC))
        input_price, output_price = _dollars(prices.input_mtok), _dollars(prices.output_mtok)
        if input_price is not None and output_price is not None:
            cached, written = _dollars(prices.cache_read_mtok), _dollars(prices.cache_write_mtok)
            price = ModelPrice(input_price, output_price, cached=cached, cache_write=written)
    return replace(
        config, window=config.window or _published_window(known.context_window), price=price
    )


@lru_cache(maxsize=256)
def _find(kind: ModelKind, model: str, base_url: str | None) -> Any | None:
    """Return the library's entry of a model; None if it has none."""
    if kind not in SERVICES:
        return None
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    provider = SERVICES[kind][0] if base_url is None else None
    try:
        return get_snapshot().find_provider_model(model, None, provider, base_url)[1]
    except LookupError:
        return None


def _published_window(tokens: int | None) -> ModelWindow | None:
    """Return the window of so many tokens; the library does not know how long answers may be."""
    if tokens is None:
        return None
    answer = _LONG_ANSWER if tokens >= _LARGE else ModelWindow().output
    return ModelWindow(input=tokens, output=min(tokens, answer))


def _dollars(amount: Any) -> float | None:
    """Return a price; of one that depends on the length of the request, that of short ones."""
    return None if amount is None else float(getattr(amount, "base", amount))
