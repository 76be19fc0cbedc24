"""A kernel with a model in it, and the app on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import textual.app
import textual.pilot
from textual.pilot import Pilot

from tests.app.opened import Opened, World, opened, world

UPDATE_SECONDS: Final = 0.02
"""Longer than from a change to the update of the screen."""


@pytest.fixture(autouse=True)
def patient_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pilot wait for what the app does.

    Textual takes a process that uses no processor for idle: on a busy machine it may just have to
    wait for one.
    """
    pause = Pilot.pause

    async def patient(pilot: Pilot[object], delay: float | None = None) -> None:
        await pause(pilot, delay)
        await screen_updated()

    monkeypatch.setattr(textual.app, "wait_for_idle", screen_updated)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", screen_updated)
    monkeypatch.setattr(Pilot, "pause", patient)


async def screen_updated(_: float = 0) -> None:
    """Let the event loop do what is to be done, and what the next update of the screen brings."""
    await _nothing_ready()
    await asyncio.sleep(UPDATE_SECONDS)
    await _nothing_ready()


async def _nothing_ready() -> None:
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # noqa: SLF001
    turns = 0
    while turns < 2:
        await asyncio.sleep(0)
        turns = 0 if ready else turns + 1


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as one:
        yield one


@pytest.fixture
async def there(here: World) -> AsyncIterator[Opened]:
    async with opened(here) as one:
        yield one
