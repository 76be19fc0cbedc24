"""A real kernel with scripted models."""

from __future__ import annotations

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
        models: Models, sleep: Sleep | None = None, settings: TurnSettings | None = None
    ) -> Stage:
        folder = tmp_path / str(len(opened))
        kernel = await open_kernel(folder)
        settings = settings if sleep is None else TurnSettings(sleep=sleep)
        runner = TurnRunner(kernel, models, settings)
        stage = Stage(kernel, await kernel.context(), runner)
        opened.append(stage)
        return stage

    yield open_one
    for stage in opened:
        await stage.runner.close()
        await stage.kernel.close()
