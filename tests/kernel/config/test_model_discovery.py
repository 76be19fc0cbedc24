"""Models that are found on this machine, believed in little, and their published limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from antiphon_kernel.config import find_local_models, with_known_limits
from antiphon_kernel.config.model_discovery import mentionable
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ModelConfig, ModelKind, ModelPrice
from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon_kernel.config.model_discovery.ANSWER_SECONDS", PATIENCE)


HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@asynccontextmanager
async def server(answer: bytes, *, is_silent: bool = False) -> AsyncIterator[int]:
    """A server that gives one answer to every request; its port."""

    async def serve(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        request = await reading.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /v1/models HTTP/1.0\r\n")
        assert b"uthorization" not in request
        if is_silent:
            await reading.read()
        else:
            writing.write(answer)
        writing.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


def listed(*entries: object) -> bytes:
    return HEAD + json.dumps({"object": "list", "data": entries}).encode()


async def test_models_of_servers_get_names_that_can_be_mentioned() -> None:
    answer = listed(
        {"id": "llama3.2:latest"},
        {"id": "/models/Qwen3-32B-Q4_K_M.gguf", "meta": {"n_ctx": 4096}},
        {"id": "meta/llama3.2", "max_model_len": 8192},
        {"id": "nomic-embed-text"},
        {"id": "日本"},
        {"id": 7},
        "x",
    )
    async with server(answer) as port:
        found = await find_local_models([port])
    url = f"http://127.0.0.1:{port}/v1"
    kind = ModelKind.OPENAI_CHAT
    assert found == [
        ModelConfig("llama3-2", kind, "llama3.2:latest", base_url=url),
        ModelConfig(
            "qwen3-32b-q4_k_m",
            kind,
            "/models/Qwen3-32B-Q4_K_M.gguf",
            base_url=url,
            window=ModelWindow(4096, 4096),
        ),
        # The first of a name counts.
        ModelConfig(
            "llama3-2", kind, "meta/llama3.2", base_url=url, window=ModelWindow(8192, 8192)
        ),
    ]


OTHER_ANSWERS = (
    b"",
    b"HTTP/1.0 404 Not Found\r\n\r\n" + listed({"id": "x"}).partition(b"\r\n\r\n")[2],
    b"HTTP/1.0 302 Found\r\nLocation: http://example.com/v1/models\r\n\r\n",
    HEAD + b"<html>",
    HEAD + b"[" * 100_000,
    HEAD + b'{"data": {"id": "x"}}',
    HEAD + b"\xff",
    HEAD + b" " * 300_000 + b'{"data": [{"id": "x"}]}',
    b"SSH-2.0-OpenSSH_9.7\r\n",
)


async def test_server_that_answers_something_else_has_no_models() -> None:
    for answer in OTHER_ANSWERS:
        async with server(answer) as port:
            assert await find_local_models([port]) == [], answer[:99]


async def test_silent_server_and_one_that_is_not_there_have_no_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon_kernel.config.model_discovery.ANSWER_SECONDS", 0.05)
    async with server(b"", is_silent=True) as port:
        assert await find_local_models([port]) == []
    assert await find_local_models([port]) == []


async def test_number_of_models_is_bounded() -> None:
    async with server(listed(*({"id": f"m{number}"} for number in range(500)))) as port:
        assert len(await find_local_models([port])) == 20


@pytest.mark.parametrize(
    ("model", "name"),
    [("gpt-oss:20b", "gpt-oss-20b"), ("A" * 100, "a" * 64), ("..", None), ("system", None)],
)
def test_mentionable_name(model: str, name: str | None) -> None:
    assert mentionable(model) == name


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
