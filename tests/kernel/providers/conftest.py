"""A wire server, and providers that are closed with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon_kernel.providers import ModelKind, RemoteProvider
from antiphon_kernel.providers.opening import open_provider
from tests.wire.asking import config_at
from tests.wire.server import WireServer


class ModelServer(WireServer):
    """A wire server, and the models that are asked at it."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: list[RemoteProvider] = []

    def model(self, kind: ModelKind, *, silence: float = 60.0, **fields: Any) -> RemoteProvider:
        """Open a model of a kind, which is closed with the test."""
        self._opened.append(open_provider(config_at(self, kind, **fields), silence=silence))
        return self._opened[-1]

    async def close_models(self) -> None:
        for provider in self._opened:
            await provider.close()


@pytest.fixture
async def wire() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server
        await server.close_models()
