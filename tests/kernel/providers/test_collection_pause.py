"""The garbage collector while a request is built and after it is sent."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from antiphon_kernel.providers import ModelKind, ProviderError, RemoteProvider
from antiphon_kernel.providers.http_clients import ServiceClient, building_request
from tests.wire.answering import Said, answer
from tests.wire.asking import ask
from tests.wire.server import FORMATS, WireAnswer, WireRequest, WireServer


@pytest.fixture
def enabled_at(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Whether the collector was enabled when a request was built, and when the server had it."""
    found: dict[str, bool] = {}
    build = ServiceClient.build_request

    def build_request(client: ServiceClient, *args: Any, **options: Any) -> httpx2.Request:
        found["built"] = gc.isenabled()
        return build(client, *args, **options)

    def reply(request: WireRequest) -> WireAnswer:
        found["received"] = gc.isenabled()
        return answer(request.kind or FORMATS[0], Said("Well."))

    monkeypatch.setattr(ServiceClient, "build_request", build_request)
    wire.reply = reply
    return found


@pytest.mark.parametrize("kind", FORMATS)
async def test_collector_is_paused_until_a_request_is_sent(
    kind: ModelKind, model: Callable[..., RemoteProvider], enabled_at: dict[str, bool]
) -> None:
    await ask(model(kind))
    assert enabled_at == {"built": False, "received": True}
    assert gc.isenabled()


async def test_request_that_cannot_be_sent_ends_the_pause(
    model: Callable[..., RemoteProvider],
) -> None:
    provider = model(FORMATS[0], base_url="http://127.0.0.1:1")
    assert isinstance((await ask(provider))[-1], ProviderError)
    assert gc.isenabled()


def test_pause_of_another_request_goes_on_until_that_is_sent() -> None:
    with building_request():
        with building_request():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
