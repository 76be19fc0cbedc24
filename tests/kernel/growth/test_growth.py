"""Cost of a call, which must not grow with what it does not touch: 20 against 240."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from asyncio import gather
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.conversation import ContextLayout
from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import Database
from antiphon_kernel.transfer import export_lines, import_lines, replay_lines
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.validation import LazyItemIndex
from tests.bench.filled import Filled, acts, cpu_microseconds, filled, long_history, many_blocks
from tests.kernel.document.structured import AMY, CONTEXT, HEADER, founded
from tests.kernel.growth.work import calls_of

FEW, MANY = 20, 240
TIMES = 4.0
"""Linear growth would be twelve; a busy machine makes some."""


async def costs(folder: Path, size: int) -> dict[str, tuple[int, float]]:
    """Python functions and microseconds of each call; the least of several."""
    folder.mkdir()
    async with filled(folder) as kernel:
        await many_blocks(kernel, size)
        block = await long_history(kernel, size)
        return {
            name: (
                min([await calls_of(act()) for _ in range(5)]),
                min(await cpu_microseconds(act, calls=10)),
            )
            for name, act in acts(kernel, block)
        }


async def test_call_costs_the_same_in_a_large_context(tmp_path: Path) -> None:
    few, many = await costs(tmp_path / "few", FEW), await costs(tmp_path / "many", MANY)
    for name, (work, microseconds) in many.items():
        # A row that falls off the undo stack takes a few calls more.
        assert work < 1.1 * few[name][0], (name, few, many)
        assert microseconds < TIMES * few[name][1], (name, few, many)


async def transfer_seconds(folder: Path, blocks: int) -> tuple[float, float]:
    """Processor time of exporting and of importing a context of short blocks."""
    folder.mkdir()
    async with filled(folder) as kernel:
        for at in range(0, blocks, 100):
            await gather(*(kernel.block(f"line {at + n}") for n in range(10)))
            await kernel.add_blocks(90, "of many in one change")
        began = time.process_time()
        text = "".join([piece async for piece in export_lines(kernel.kernel, kernel.context)])
        exported = time.process_time()
        made = await import_lines(kernel.kernel, kernel.owner, whole(text), "copy", lambda: None)
        assert made[1] == blocks
        return exported - began, time.process_time() - exported


async def whole(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


SIZES = (25_000, 100_000) if os.environ.get("ANTIPHON_LONG") else (100, 400)


async def test_exporting_and_importing_cost_in_proportion_to_the_blocks(tmp_path: Path) -> None:
    costs = [await transfer_seconds(tmp_path / str(size), size) for size in SIZES]
    # Four times the blocks: in proportion it would be 4, with the square of them 16.
    for once, four_times in zip(*costs, strict=True):
        assert four_times < 9 * once, costs


async def replay_work(folder: Path, versions: int) -> int:
    """The work of exporting a context of so many versions as a redacted replay."""
    folder.mkdir()
    async with filled(folder) as kernel:
        await long_history(kernel, versions)

        async def export() -> None:
            async for _ in replay_lines(kernel.kernel, kernel.context, ["secret"]):
                pass

        return await calls_of(export())


async def test_replay_takes_work_in_proportion_to_the_versions(tmp_path: Path) -> None:
    few, many = [await replay_work(tmp_path / str(size), size) for size in (20, 120)]
    assert many < 7 * few


async def fork_calls(folder: Path, fill: Callable[[Filled, int], Awaitable[str]], size: int) -> int:
    folder.mkdir()
    async with filled(folder) as kernel:
        await fill(kernel, size)
        await kernel.call("context.fork", context="default")
        return await calls_of(kernel.call("context.fork", context="default"))


async def test_fork_of_ten_times_the_blocks_takes_ten_times_the_work(tmp_path: Path) -> None:
    few, many = [await fork_calls(tmp_path / str(size), many_blocks, size) for size in (20, 200)]
    assert many < 12 * few


async def drift_calls(folder: Path, size: int) -> list[int]:
    """The work of bringing blocks over, of bringing the copies on, and of undo and redo."""
    folder.mkdir()
    async with filled(folder) as kernel:

        async def work_of(tool: str, **params: Any) -> int:
            await kernel.kernel.search.wait_indexed()
            return await calls_of(kernel.call(tool, **params))

        await many_blocks(kernel, size)
        blocks = list(kernel.context.document.block_ids())
        for label in ("notes", "third"):
            await kernel.call("context.create", label=label)
        done = [await work_of("drift.push", to="notes", blocks=blocks)]
        notes = await kernel.kernel.context("notes")
        copies = list(notes.document.block_ids())[1:]
        done.append(await work_of("drift.push", to="third", blocks=copies))
        turns = [await work_of(f"block.{turn}", context="third") for turn in ("undo", "redo")]
        return [*done, sum(turns)]


async def test_drift_of_five_times_the_blocks_takes_five_times_the_work(tmp_path: Path) -> None:
    few, many = [await drift_calls(tmp_path / str(size), size) for size in (5, 25)]
    assert all(much < 6 * little for little, much in zip(few, many, strict=True)), (few, many)


async def test_fork_after_a_long_history_takes_the_same_work(tmp_path: Path) -> None:
    short, long = [await fork_calls(tmp_path / str(size), long_history, size) for size in (10, 200)]
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


NEW: list[dict[str, Any]] = [
    {"role": "user", "content": "And then?"},
    {"role": "assistant", "content": "Then nothing."},
]


async def conversation(kernel: Filled, depth: int) -> str:
    """The last message of a conversation of so many."""
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": f"message {at}"} for at in range(depth)
    ]
    return str((await kernel.call("message.append", messages=messages))["message_id"])


async def append_calls(folder: Path, depth: int, branches: int) -> tuple[int, int]:
    """The work of appending what is there already, and of appending something new."""
    folder.mkdir()
    async with filled(folder) as kernel:
        parent = await conversation(kernel, depth)
        for number in range(branches):
            message = {"role": "user", "content": f"branch {number}"}
            await kernel.call("message.append", parent=parent, messages=[message])
        placed = await kernel.call("message.append", parent=parent, messages=NEW)
        await kernel.call("message.append", parent=parent, messages=NEW)
        reused = await calls_of(kernel.call("message.append", parent=parent, messages=NEW))
        new = await calls_of(
            kernel.call("message.append", parent=placed["message_id"], messages=NEW)
        )
        return reused, new


async def test_append_below_a_deep_message_takes_the_same_work(tmp_path: Path) -> None:
    shallow = await append_calls(tmp_path / "shallow", 10, 0)
    deep = await append_calls(tmp_path / "deep", 200, 0)
    for few, many in zip(shallow, deep, strict=True):
        assert many < 1.3 * few, (shallow, deep)


async def test_append_beside_many_branches_takes_the_same_work(tmp_path: Path) -> None:
    few = await append_calls(tmp_path / "few", 5, 2)
    many = await append_calls(tmp_path / "many", 5, 40)
    for one, other in zip(few, many, strict=True):
        assert other < 1.3 * one, (few, many)


BLOCKS = 300
MODEL = "0" * 31 + "b"


def written() -> Document:
    """Return prompts, each with an answer by a model."""
    document = founded()
    with document.transaction(None):
        for number in range(BLOCKS):
            prompt, answer = f"{CONTEXT}.{AMY}.{number}", f"{CONTEXT}.{MODEL}.{number}"
            header = HEADER._replace(
                id=prompt,
                order=f"{number:05}",
                created="2026-01-01T00:00:00.000Z",
                status=Status.DONE,
            )
            if number % 2:
                prompt = f"{CONTEXT}.{AMY}.{number - 1}"
                header = header._replace(id=answer, author=MODEL, role=Role.MODEL, parent=prompt)
            document.create_block(header, "text")
    return document


async def held_of(doing: Awaitable[object]) -> float:
    """Return the bytes for each block that are held of what it makes."""
    gc.collect()
    tracemalloc.start()
    try:
        made = await doing
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        del made
    finally:
        tracemalloc.stop()
    return held / BLOCKS


async def test_layout_takes_few_bytes_of_each_block() -> None:
    layout = ContextLayout(written())
    assert await held_of(layout.load()) < 960
    assert await held_of(layout.prepare(MODEL, is_plain=False)) < 800


async def test_index_of_items_takes_few_bytes_of_each_block() -> None:
    assert await held_of(LazyItemIndex(written()).read()) < 700
