"""Contexts that a model may answer in, read when they are opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import LayoutItem, LayoutReader, ModelView, model_view, reading
from antiphon_kernel.providers import End, TextDelta
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.models import Models
from tests.kernel.turns.stage import Replying, Stage, remote

TURNS = 30


@asynccontextmanager
async def opened(folder: Path, models: Models) -> AsyncIterator[Stage]:
    """Open a kernel and its context, which nobody has asked for yet."""
    registry = Registry((*KERNEL_TOOLS, *TURN_TOOLS))
    kernel = await Kernel.open(folder / "data", folder, registry=registry, owner="amy")
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
    provider = Replying((TextDelta("Well."), End("end_turn")))
    async with opened(stored, remote(provider)) as stage:
        await stage.runner.wait_read()
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
        await stage.runner.wait_read()
    assert len(provider.prompts) == 1
    assert len(set(viewed)) == TURNS + 1
    assert len(viewed) <= TURNS + 2


async def test_context_of_a_kernel_without_models_is_not_read(
    stored: Path, viewed: list[str]
) -> None:
    async with opened(stored, Models({})) as stage:
        await stage.runner.wait_read()
    assert not viewed


async def test_closing_ends_the_reading(stored: Path, caplog: pytest.LogCaptureFixture) -> None:
    provider = Replying((End("end_turn"),))
    async with opened(stored, remote(provider)) as stage:
        await asyncio.sleep(0)
    await stage.runner.wait_read()
    assert not caplog.records
