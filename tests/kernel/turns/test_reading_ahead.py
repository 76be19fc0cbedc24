"""Contexts of turns: read when they are opened, and kept open until the turns are over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon_kernel.contexts import UseScope
from antiphon_kernel.layout import LayoutItem, reading
from antiphon_kernel.layout.reading import ModelView, model_view
from antiphon_kernel.layout.text_forms import LayoutReader
from antiphon_kernel.limits import Limits
from antiphon_kernel.providers import End, TextDelta
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind
from tests.kernel.turns.stage import (
    Gate,
    Replying,
    Stage,
    open_kernel,
    recording,
    remote,
    scripted,
    wait_read,
)

TURNS = 30


@asynccontextmanager
async def opened(folder: Path, models: Models) -> AsyncIterator[Stage]:
    """Open a kernel and its context, which nobody has asked for yet."""
    kernel = await open_kernel(folder)
    runner = TurnRunner(kernel, models)
    try:
        yield Stage(kernel, await kernel.context(), runner)
    finally:
        await runner.close()
        await kernel.close()


@pytest.fixture
async def stored(tmp_path: Path) -> Path:
    """Folder of a kernel whose context has many turns."""
    async with opened(tmp_path, Models({})) as stage:
        for number in range(TURNS):
            await stage.submit(f"Question {number}")
    return tmp_path


@pytest.fixture
def viewed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Turns that were put into messages, in order."""
    turns: list[str] = []

    def view(items: Sequence[LayoutItem], reader: LayoutReader) -> ModelView:
        turns.append(items[0].turn)
        return model_view(items, reader)

    monkeypatch.setattr(reading, "model_view", view)
    return turns


async def test_first_turn_reads_only_what_is_new_since_the_context_was_opened(
    stored: Path, viewed: list[str]
) -> None:
    async with opened(stored, Models({})):
        await wait_read()
    assert not viewed, "nothing is read for no model"
    provider = Replying((TextDelta("Well."), End("end_turn")))
    async with opened(stored, remote(provider)) as stage:
        await wait_read()
        assert len(viewed) == TURNS
        await stage.play("And now?")
    assert len(provider.prompts) == 1
    assert len(viewed) == TURNS + 1


async def test_first_turn_that_begins_meanwhile_reads_every_turn_once(
    stored: Path, viewed: list[str]
) -> None:
    provider = Replying((TextDelta("Well."), End("end_turn")))
    async with opened(stored, remote(provider)) as stage:
        await stage.play("And now?")
        await wait_read()
    assert len(provider.prompts) == 1
    assert len(set(viewed)) == TURNS + 1
    assert len(viewed) <= TURNS + 2


async def test_closing_ends_the_reading(stored: Path, caplog: pytest.LogCaptureFixture) -> None:
    provider = Replying((End("end_turn"),))
    async with opened(stored, remote(provider)):
        await asyncio.sleep(0)
    await wait_read()
    assert not caplog.records


ARIA = recording("aria", [TextDelta("I am "), TextDelta("aria.\n")])


async def test_context_of_turns_that_run_and_wait_stays_open_until_they_end(tmp_path: Path) -> None:
    closed: list[str] = []
    gate = Gate(0)
    limits = Limits(idle_context_seconds=0, idle_check_seconds=1e6)
    kernel = await open_kernel(tmp_path, limits=limits)
    kernel.closed.listen(lambda context: closed.append(context.label))
    runner = TurnRunner(kernel, scripted(gate, ARIA))
    with UseScope():
        stage = Stage(kernel, await kernel.context(), runner)
    await stage.submit("hello")
    await stage.submit("hello again")
    await gate.shut()
    await kernel.open_contexts.close_idle()
    assert closed == []
    await gate.open()
    await runner.wait_idle()
    await wait_read()
    await kernel.open_contexts.close_idle()
    assert closed == ["default"]
    with UseScope():
        stage.context = await kernel.context()
    assert sorted(map(stage.text, stage.of_kind(BlockKind.TEXT))) == [
        "I am aria.\n",
        "I am aria.\n",
        "hello",
        "hello again",
    ]
    await runner.close()
    await kernel.close()
