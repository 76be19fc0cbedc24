"""Going through the versions of a cell: drawn in this process, without a kernel."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterator, Sequence
from typing import Final

from textual.app import App

from antiphon.render.timeline import HistoryStep, Timeline, TimelineText
from antiphon.screens.history import HistoryModal
from antiphon.screens.history_source import HistorySource
from tests.bench.figures import Figure, figure

SIZES: Final = (100, 10_000)
WORDS: Final = ("The ", "two ", "of ", "them ", "write ", "in ", "turn, ", "one ", "text.\n")


def cell(versions: int) -> tuple[Timeline, Sequence[HistoryStep]]:
    """Return a cell of so many words by two people, a version each, every tenth one cut again."""
    chance, texts = random.Random(0), list[TimelineText]()
    for version in range(1, versions + 1):
        who = chance.choice(("amy", "bo"))
        until = None if version % 10 else chance.randint(version + 1, versions + 2)
        texts.append(TimelineText(chance.choice(WORDS), who, version, until))
    chance.shuffle(texts)
    steps = [
        HistoryStep(at, "2026-01-01T00:00:00.000Z", who, who, "edit", {"block": at})
        for at, who in sorted((one.since, one.principal) for one in texts)
    ]
    return Timeline(tuple(texts), versions), steps


async def step_times(versions: int, steps: int, size: tuple[int, int]) -> list[float]:
    """Milliseconds of processor time for each step, until it is on the terminal.

    As in the app, the garbage collector leaves alone what was there before.
    """
    gc.collect()
    gc.freeze()
    line, changes = cell(versions)

    async def told(_block: str | None) -> Sequence[HistoryStep]:
        return changes

    async def timeline(_block: str) -> Timeline:
        return line

    source = HistorySource(told, timeline, lambda who: (who, len(who)), lambda _: ("¶1", 0), [])
    app, modal = App[None](), HistoryModal(source, "block")
    async with app.run_test(size=size) as pilot:
        await app.push_screen(modal)
        await pilot.pause()
        samples = []
        for number in range(steps):
            began = time.process_time()
            modal.action_go(number * (versions - 1) // steps)
            shown = asyncio.Event()
            modal.call_after_refresh(shown.set)
            await shown.wait()
            samples.append((time.process_time() - began) * 1000)
        return samples


def measure_history(cols: int, rows: int, steps: int) -> Iterator[Figure]:
    """Yield what a step through few and through many versions takes."""
    few, many = (asyncio.run(step_times(size, steps, (cols, rows))) for size in SIZES)
    yield figure(
        f"step through the history of a cell, {SIZES[1]:,} versions",
        "ms",
        many,
        baseline=few,
        against=f"{SIZES[0]} versions",
        budget=50,
    )
