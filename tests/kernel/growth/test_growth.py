"""What a call costs must not grow with what it does not touch: 100 against 10,000."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.bench.filled import Filled, acts, cpu_microseconds, filled, long_history, many_blocks

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
async def test_a_call_costs_the_same_in_a_large_context(
    fill: Callable[[Filled, int], Awaitable[str]], tmp_path: Path
) -> None:
    few = await costs(tmp_path / "few", fill, FEW)
    many = await costs(tmp_path / "many", fill, MANY)
    grown = {name: many[name] / few[name] for name in few}
    assert max(grown.values()) < TIMES, grown


async def test_the_encoded_state_does_not_grow_with_the_number_of_appends(tmp_path: Path) -> None:
    async with filled(tmp_path) as kernel:
        block = await kernel.block("")
        for _ in range(MANY // 10):
            kernel.context.write(
                kernel.owner,
                "append",
                lambda: kernel.context.document.append(block, "word "),
                blocks=[block],
            )
        text = kernel.context.document.length(block)
        assert len(kernel.context.document.update_since()) < text + 1_000
