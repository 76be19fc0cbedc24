"""A real kernel with scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.turn import TurnSettings
from tests.kernel.turns.stage import OpenStage, Sleep, Stage, open_kernel


@pytest.fixture
async def open_stage(tmp_path: Path) -> AsyncIterator[OpenStage]:
    opened: list[Stage] = []

    async def open_one(
        models: Models, sleep: Sleep = asyncio.sleep, settings: TurnSettings | None = None
    ) -> Stage:
        folder = tmp_path / str(len(opened))
        kernel = await open_kernel(folder)
        runner = TurnRunner(kernel, models, sleep=sleep, settings=settings)
        stage = Stage(kernel, await kernel.context(), runner)
        opened.append(stage)
        return stage

    yield open_one
    for stage in opened:
        await stage.runner.close()
        await stage.kernel.close()
