"""A wire server, and providers that are closed with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from antiphon_kernel.providers import ModelKind, RemoteProvider
from antiphon_kernel.providers.opening import open_provider
from tests.wire.asking import config_at
from tests.wire.server import WireServer


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    async with WireServer() as server:
        yield server


@pytest.fixture
async def model(wire: WireServer) -> AsyncIterator[Callable[..., RemoteProvider]]:
    """Return a function that opens a model of a kind at the wire server."""
    opened: list[RemoteProvider] = []

    def open_model(kind: ModelKind, *, silence: float = 60.0, **fields: Any) -> RemoteProvider:
        opened.append(open_provider(config_at(wire, kind, **fields), silence=silence))
        return opened[-1]

    yield open_model
    for provider in opened:
        await provider.close()
