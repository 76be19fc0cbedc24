"""A model in a file on this machine: its answers, its limits, and the process that serves it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from antiphon_kernel.messages import ModelWindow, TextBlock, UserMessage
from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelConfig,
    ModelKind,
    ModelPrompt,
    ProviderError,
    RemoteProvider,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.providers.events import StopReason, TurnEvent
from antiphon_kernel.providers.opening import LocalProvider, open_provider, packaged_model
from antiphon_kernel.types.errors import AntiphonError
from tests.local_model import LIMIT, local_servers, looks_into_proc, needs_local_model
from tests.processes import has_ended
from tests.waiting import until, wait_until
from tests.wire.asking import ask, asking, prompt_of

ROOT: Final = Path(__file__).parents[3]
WINDOW: Final = 2048
LONG: Final = "Write a very long story about a king, chapter after chapter."
FEW: Final = 250
"""Tokens that no answer to this question ends with by itself."""

ENDED_PARENT: Final = """
import asyncio, os, sys
from antiphon_kernel.providers.opening import LocalProvider, open_provider, packaged_model
from tests.local_model import local_servers
from tests.wire.asking import asking, prompt_of

async def main():
    model = LocalProvider(packaged_model(), open_provider, threads=1)
    async for event in model.stream(asking(prompt_of(tools=(), max_tokens=1500))):
        print(*local_servers(os.getpid()), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
"""Asks the model, prints its server's process id, and then waits in the middle of the answer."""

pytestmark = [needs_local_model, pytest.mark.asyncio(loop_scope="module")]


class LocalModel:
    """A local model, and the configuration that its server is asked with."""

    def __init__(self, config: ModelConfig) -> None:
        # Several threads wait for each other, busily, on a machine with much else to do.
        self.provider = LocalProvider(config, self._open_chat, threads=1)
        self.chat = config

    def _open_chat(self, config: ModelConfig) -> RemoteProvider:
        self.chat = config
        return open_provider(config)

    async def answer(self, prompt: ModelPrompt) -> list[TurnEvent]:
        """Return the events of one round, asked again while there is no connection, as a turn does.

        A server that was killed may still be taken for a running one for a moment.
        """
        async with asyncio.timeout(LIMIT):
            while True:
                events = await ask(self.provider, prompt)
                match events:
                    case [ProviderError(kind=ErrorKind.UNREACHABLE)]:
                        await asyncio.sleep(0)
                    case _:
                        return events

    @property
    def key(self) -> str:
        assert self.chat.key is not None
        return self.chat.key.value

    def slot(self) -> dict[str, Any]:
        """Return what the server is doing, as it tells it itself."""
        address = str(self.chat.base_url).removesuffix("/v1")
        request = urllib.request.Request(
            f"{address}/slots", headers={"Authorization": f"Bearer {self.key}"}
        )
        with urllib.request.urlopen(request) as answered:
            (slot,) = json.load(answered)
        return dict(slot)


def local_config() -> ModelConfig:
    return replace(packaged_model(), window=ModelWindow(WINDOW, 1500, total=WINDOW))


def question(text: str, max_tokens: int) -> ModelPrompt:
    return prompt_of(UserMessage((TextBlock(text),)), tools=(), max_tokens=max_tokens)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def local() -> AsyncIterator[LocalModel]:
    """One model for all tests that let it live."""
    model = LocalModel(local_config())
    yield model
    await model.provider.close()


async def test_answer_is_streamed_counted_limited_and_ended_and_a_long_request_refused(
    local: LocalModel,
) -> None:
    events = await local.answer(question("Say hello to Ann.", max_tokens=20))
    *texts, usage, end = events
    assert len(texts) > 1 and all(isinstance(one, TextDelta) for one in texts), events
    assert isinstance(usage, TokenUsage) and isinstance(end, End)
    assert usage.input_tokens > 10 and len(texts) <= usage.output_tokens + 1 <= 21
    assert end.stop_reason in (StopReason.END_TURN, StopReason.MAX_TOKENS)
    *_, usage, end = await local.answer(question(LONG, max_tokens=4))
    assert end == End(StopReason.MAX_TOKENS)
    assert isinstance(usage, TokenUsage) and usage.output_tokens == 4
    (error,) = await local.answer(question("word " * WINDOW, max_tokens=4))
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.CONTEXT_TOO_LONG, error
    assert local.key not in repr(error)
    # A stream that is closed ends the generation, and the next request begins.
    prompt = question(LONG, max_tokens=1500)
    async with aclosing(local.provider.stream(asking(prompt))) as stream:
        assert isinstance(await anext(stream), TextDelta)
        began = await asyncio.to_thread(local.slot)
        assert began["is_processing"]
    while (slot := await asyncio.to_thread(local.slot))["is_processing"]:
        await asyncio.sleep(0.01)
    assert slot["n_prompt_tokens"] - began["n_prompt_tokens"] < FEW
    assert isinstance((await local.answer(question("Hello", max_tokens=2)))[0], TextDelta)


@looks_into_proc
async def test_server_shows_no_key_is_started_again_when_killed_and_ends_when_it_is_closed(
    local: LocalModel, caplog: pytest.LogCaptureFixture
) -> None:
    await local.answer(question("Hello", max_tokens=1))
    (killed,) = local_servers(os.getpid())
    key = local.key
    for pid in (killed, os.getpid()):
        for name in ("cmdline", "environ"):
            assert key.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert key not in repr(local.chat)
    os.kill(killed, signal.SIGKILL)
    await until(lambda: has_ended(killed), "the server's end")
    with caplog.at_level(logging.WARNING):
        events = await local.answer(question("Hello", max_tokens=2))
    assert isinstance(events[0], TextDelta), events
    assert "starting it again" in caplog.text
    (server,) = local_servers(os.getpid())
    assert server != killed
    assert key not in caplog.text and local.key != key
    await local.provider.close()
    assert has_ended(server)


@looks_into_proc
async def test_server_ends_in_the_middle_of_an_answer_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", ENDED_PARENT], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout is not None
    try:
        server = int(await asyncio.to_thread(parent.stdout.readline))
        assert not has_ended(server)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    await asyncio.to_thread(wait_until, lambda: has_ended(server), "the end of the server")


async def test_file_that_is_not_there_or_no_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    (error,) = await _answer_of(path)
    assert error == ProviderError(
        f"The model smol is the file {path}, and there is no such file: name a GGUF file as"
        " `model` in the configuration.",
        ErrorKind.INVALID_REQUEST,
    )
    path.write_bytes(b"GGUF\x03\x00\x00\x00\xff\xff")
    (error,) = await _answer_of(path)
    assert isinstance(error, ProviderError) and error.kind is ErrorKind.INVALID_REQUEST
    assert error.message.startswith(f"The model {path} could not be loaded: "), error


async def test_model_whose_package_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AntiphonError, match="make local-model"):
        packaged_model()
    (error,) = await ask(open_provider(ModelConfig("smol", ModelKind.LOCAL, "any.gguf")))
    assert isinstance(error, ProviderError) and error.kind is ErrorKind.NOT_INSTALLED
    assert "antiphon[local]" in error.message


async def _answer_of(path: Path) -> list[TurnEvent]:
    model = LocalModel(replace(local_config(), model=str(path)))
    try:
        return await model.answer(question("Hello", max_tokens=1))
    finally:
        await model.provider.close()
