"""Reading and writing by the line with a model, on pipes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.cli.linear import LinearSession
from antiphon.options import AppOptions
from antiphon_kernel.client.tool_client import ToolClient
from tests.app.opened import World, world
from tests.waiting import until


class Pipes:
    """A session, what it is told and what it has printed."""

    def __init__(self, here: World) -> None:
        locate = AppOptions(data=here.data).locate
        self._calls, self._waiting = ToolClient(locate), ToolClient(locate)
        source, self._typed = os.pipe()
        self._printed, sink = os.pipe()
        self._files = [os.fdopen(source, "rb", buffering=0), os.fdopen(sink, "wb", buffering=0)]
        session = LinearSession(self._calls, self._waiting, *self._files)
        self.running = asyncio.create_task(session.run("default"))
        self.text = ""
        asyncio.get_running_loop().add_reader(self._printed, self._read)

    def _read(self) -> None:
        self.text += os.read(self._printed, 65_536).decode()

    def type(self, line: str) -> None:
        os.write(self._typed, f"{line}\n".encode())

    def end(self) -> None:
        os.close(self._typed)

    async def sees(self, text: str) -> None:
        await until(lambda: text in self.text, lambda: f"{text!r} in {self.text}")

    async def close(self) -> None:
        self.running.cancel()
        await asyncio.wait({self.running})
        asyncio.get_running_loop().remove_reader(self._printed)
        os.close(self._printed)
        for file in self._files:
            file.close()
        await self._calls.close()
        await self._waiting.close()


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, asks=True) as one:
        yield one


@pytest.fixture
async def pipes(asking: World) -> AsyncIterator[Pipes]:
    one = Pipes(asking)
    try:
        yield one
    finally:
        await one.close()


async def test_linear_session_begins_with_the_end_of_a_long_block(asking: World) -> None:
    await asking.cell("".join(f"line {number}\n" for number in range(100)) + "unfinished")
    pipes = Pipes(asking)
    try:
        await pipes.sees("unfinished")
        assert "line 81\n" in pipes.text
        assert "line 80\n" not in pipes.text
        left_out = "81 lines before these: /read default.bela.1 shows all."
        assert left_out in pipes.text
        pipes.type("/read")
        await until(lambda: pipes.text.count("unfinished") == 2, "the end again")
        assert pipes.text.count(left_out) == 2
        assert "line 80\n" not in pipes.text
        pipes.type("/read default.bela.1")
        await pipes.sees("line 0\n")
    finally:
        await pipes.close()


async def test_linear_session_prints_an_answer_as_it_comes_and_stops_it(
    asking: World, pipes: Pipes
) -> None:
    pipes.type("hi")
    await until(lambda: asking.aria.prompts == ["hi"], "the model is asked")
    asking.aria.write("first line\nsecond")
    await pipes.sees("first line\n")
    pipes.type("/stop")
    await pipes.sees("Stopped: aria.")
    await pipes.sees("(interrupted by amy)")


async def test_linear_session_asks_about_a_call_and_lets_it_run(
    asking: World, pipes: Pipes
) -> None:
    pipes.type("hi")
    await until(lambda: bool(asking.aria.prompts), "the model is asked")
    asking.aria.run("echo $((6 * 7))")
    await pipes.sees("Asked: may shell run with")
    pipes.type("/once")
    await pipes.sees("\n42\n")
    asking.aria.end()


async def test_linear_session_whose_input_has_ended_allows_no_call_and_ends(
    asking: World, pipes: Pipes
) -> None:
    pipes.type("hi")
    await until(lambda: bool(asking.aria.prompts), "the model is asked")
    pipes.end()
    asking.aria.run("echo $((6 * 7))")
    await pipes.sees("Asked: may shell run with")
    asking.aria.write("Then not.")
    asking.aria.end()
    await until(pipes.running.done, lambda: f"its end: {pipes.text}")
    await pipes.sees("Then not.")
    assert "42" not in pipes.text
