"""Appending costs what is new: not how deep the conversation is, nor how many branches it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.bench.filled import Filled, filled
from tests.kernel.growth.work import calls_of

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
    deep = await append_calls(tmp_path / "deep", 1_000, 0)
    for few, many in zip(shallow, deep, strict=True):
        assert many < 1.3 * few, (shallow, deep)


async def test_append_beside_many_branches_takes_the_same_work(tmp_path: Path) -> None:
    few = await append_calls(tmp_path / "few", 10, 2)
    many = await append_calls(tmp_path / "many", 10, 40)
    for one, other in zip(few, many, strict=True):
        assert other < 1.3 * one, (few, many)
