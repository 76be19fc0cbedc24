"""Cost of a key, a token and a scrolled frame, whatever there is beside them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from antiphon_kernel.types.enums import Status
from tests.app.widgets.block_list.sample import Sample, on_screen

FEW, MANY = 34, 1_700
"""Turns of three blocks: about 100 and 5,000 blocks."""
ROUNDS = 25


async def costs(turns: int) -> tuple[dict[str, float], dict[str, int]]:
    """CPU seconds of the cheapest of many frames of each kind, and cells drawn for them."""
    sample = Sample()
    sample.add_turns(turns)
    seconds: dict[str, float] = {}
    drawn: dict[str, int] = {}
    async with on_screen(sample, size=(100, 30)) as (app, pilot):
        cells = app.cells
        while app.source.preload(1000):
            pass

        def measure(name: str, act: Callable[[int], object]) -> None:
            best = float("inf")
            before = cells.looks.pictures.drawn
            for number in range(ROUNDS):
                start = time.process_time()
                act(number)
                cells.draw()
                best = min(best, time.process_time() - start)
            seconds[name] = best
            drawn[name] = cells.looks.pictures.drawn - before

        measure("scroll up", lambda _: cells.scroll_rows(-3))
        measure("scroll down", lambda _: cells.scroll_rows(3))
        block = sample.add("", status=Status.RUNNING)
        cells.to_tail()
        measure("stream", lambda number: sample.peer.append(block, f"token {number} "))
        first = sample.here.block_ids()[0]
        measure("off screen", lambda number: sample.peer.splice(first, 0, 0, f"edit {number} "))
        app.area.edit(sample.here.block_ids()[-2], 3)
        await pilot.pause()
        editor = app.area.editor
        assert editor is not None
        measure("key", lambda _: editor.insert("x", maintain_selection_offset=False))
    return seconds, drawn


@pytest.mark.usefixtures("own_home")
async def test_frames_cost_the_same_at_a_hundred_and_at_thousands_of_blocks() -> None:
    few, few_drawn = await costs(FEW)
    many, many_drawn = await costs(MANY)
    assert few_drawn == many_drawn
    slower = {name: many[name] / few[name] for name in few}
    assert max(slower.values()) < 3, slower
