"""Cost of a call, which must not grow with what it does not touch: 100 against 10,000."""

from __future__ import annotations

import os
import time
from asyncio import gather
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from antiphon_kernel.transfer import export_lines, import_lines
from tests.bench.filled import Filled, acts, cpu_microseconds, filled, long_history, many_blocks
from tests.kernel.growth.work import calls_of

FEW, MANY = 100, 10_000
TIMES = 3.0
"""Linear growth would be a hundred; a busy machine makes some."""


async def costs(
    folder: Path, fill: Callable[[Filled, int], Awaitable[str]], size: int
) -> dict[str, float]:
    """Processor time of each call in microseconds; the least of several rounds."""
    folder.mkdir()
    async with filled(folder) as kernel:
        block = await fill(kernel, size)
        return {name: min(await cpu_microseconds(act)) for name, act in acts(kernel, block)}


@pytest.mark.parametrize("fill", [many_blocks, long_history])
async def test_call_costs_the_same_in_a_large_context(
    fill: Callable[[Filled, int], Awaitable[str]], tmp_path: Path
) -> None:
    few = await costs(tmp_path / "few", fill, FEW)
    many = await costs(tmp_path / "many", fill, MANY)
    grown = {name: many[name] / few[name] for name in few}
    assert max(grown.values()) < TIMES, grown


async def work(folder: Path, operations: int) -> dict[str, int]:
    """Python functions that each call takes behind so many; the least of several."""
    folder.mkdir()
    async with filled(folder) as kernel:
        block = await long_history(kernel, operations)
        return {
            name: min([await calls_of(act()) for _ in range(5)])
            for name, act in acts(kernel, block)
        }


async def test_call_does_the_same_work_behind_many_operations(tmp_path: Path) -> None:
    few, many = await work(tmp_path / "few", FEW), await work(tmp_path / "many", MANY // 4)
    # A row that falls off the undo stack takes a few calls more.
    assert all(many[name] < 1.1 * few[name] for name in few), (few, many)


async def transfer_seconds(folder: Path, blocks: int) -> tuple[float, float]:
    """Processor time of exporting and of importing a context of short blocks."""
    folder.mkdir()
    async with filled(folder) as kernel:
        for at in range(0, blocks, 100):
            await gather(*(kernel.block(f"line {at + n}") for n in range(80)))
            await kernel.add_blocks(20, "of many in one change")
        began = time.process_time()
        text = "".join([piece async for piece in export_lines(kernel.kernel, kernel.context)])
        exported = time.process_time()
        made = await import_lines(kernel.kernel, kernel.owner, whole(text), "copy", lambda: None)
        assert made[1] == blocks
        return exported - began, time.process_time() - exported


async def whole(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


SIZES = (25_000, 50_000, 100_000) if os.environ.get("ANTIPHON_LONG") else (500, 1_000, 2_000)


async def test_exporting_and_importing_cost_in_proportion_to_the_blocks(tmp_path: Path) -> None:
    costs = [await transfer_seconds(tmp_path / str(size), size) for size in SIZES]
    # Four times the blocks: in proportion it would be 4, with the square of them 16.
    for once, four_times in zip(costs[0], costs[-1], strict=True):
        assert four_times < 9 * once, costs
