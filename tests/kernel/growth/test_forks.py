"""A fork costs what it copies: not what has been written before, and one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.storage import Database
from tests.bench.filled import Filled, filled, long_history, many_blocks
from tests.kernel.growth.work import calls_of


async def fork_calls(folder: Path, fill: Callable[[Filled, int], Awaitable[str]], size: int) -> int:
    folder.mkdir()
    async with filled(folder) as kernel:
        await fill(kernel, size)
        await kernel.call("context.fork", context="default")
        return await calls_of(kernel.call("context.fork", context="default"))


async def test_fork_of_ten_times_the_blocks_takes_ten_times_the_work(tmp_path: Path) -> None:
    few, many = [await fork_calls(tmp_path / str(size), many_blocks, size) for size in (100, 1_000)]
    assert many < 12 * few


async def test_fork_after_a_long_history_takes_the_same_work(tmp_path: Path) -> None:
    short, long = [
        await fork_calls(tmp_path / str(size), long_history, size) for size in (10, 1_000)
    ]
    assert long < 1.2 * short


async def test_fork_takes_one_transaction_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    for name in ("write", "insert"):
        original = getattr(Database, name)

        def noted(*arguments: Any, original: Any = original, name: str = name) -> Any:
            written.append(name)
            return original(*arguments)

        monkeypatch.setattr(Database, name, noted)
    async with filled(tmp_path) as kernel:
        await many_blocks(kernel, 50)
        written.clear()
        await kernel.call("context.fork", context="default")
        assert written == ["write"]
