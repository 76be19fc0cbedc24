"""Calls that change a conversation's tree, killed at every step of their write: all or nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.records import Actor
from tests.kernel.crash.faults import Fault, in_a_process, inject, moments, open_kernel
from tests.kernel.tools.files import PNG
from tests.kernel.tools.test_message_machine import Machine, check_trees

STEPS = (
    "BEGIN",
    "INSERT INTO contexts",
    "INSERT INTO ops",
    "INSERT INTO blocks",
    "INSERT INTO undo",
    "INSERT INTO snapshots",
    "COMMIT",
)
IMAGE = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{b64encode(PNG).decode()}"},
}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "append at the end": (
        "append",
        {"parent": "default.amy.4", "messages": [{"role": "user", "content": "e"}]},
    ),
    "append in a branch": (
        "append",
        {"parent": "default.amy.1", "messages": [{"role": "user", "content": "e"}] * 3},
    ),
    "edit in a branch": ("edit", {"message": "default.amy.3", "content": "c and more"}),
    "split": ("split", {"message": "default.amy.3", "at": 2}),
    "delete in every branch": (
        "delete",
        {"messages": ["default.amy.2"], "descendants": "reparent"},
    ),
}

LOOM = {
    "roots.json": [{"id": "r", "config": {"systemPrompt": "Be brief."}}],
    **{
        f"{name}.json": {
            "id": name,
            "parent_id": parent,
            "message": {"role": "user", "content": [{"type": "text", "text": name}, *more]},
        }
        for name, parent, more in (
            ("a", "r", []),
            ("b", "a", [IMAGE]),
            ("c", "a", []),
            ("d", "b", []),
            ("e", "b", []),
        )
    },
}
CALLS["import a tree"] = (
    "import",
    {
        "format": "loom",
        "text": json.dumps({name: json.dumps(value) for name, value in LOOM.items()}),
        "label": "tree",
    },
)
CALLS["import two conversations"] = (
    "import",
    {"text": json.dumps([{"messages": [{"role": "user", "content": "a"}]}] * 2)},
)

State = dict[str, list[dict[str, Any]]]


async def call(kernel: Kernel, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    return await kernel.call(await session(kernel), f"message.{tool}", params)


async def session(kernel: Kernel) -> Actor:
    """A session that is on disk: else the first transaction of a call may be that of its own."""
    amy = kernel.open_session(kernel.owner, "test")
    while amy.session not in [one.id for one in await kernel.journal.sessions()]:
        await asyncio.sleep(0)
    return amy


async def state(data: Path) -> State:
    """The messages of every context, which are checked for what must hold."""
    kernel = await open_kernel(data)
    found: State = {}
    for row in kernel.contexts.rows():
        path = await call(kernel, "path", {"context": row.id})
        found[row.label] = [one["message"] for one in path["messages"]]
    await check_trees(kernel)
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    return found


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """Two branches with one beginning."""
    folder = tmp_path / "data"
    kernel = await open_kernel(folder)
    texts = ("a", "b", "c is long", "d")
    messages = [{"role": "user", "content": text} for text in texts]
    await call(kernel, "append", {"messages": messages})
    other = [*messages[:2], {"role": "user", "content": "other"}]
    await call(kernel, "append", {"messages": other})
    await kernel.close()
    return folder


def run_and_die(data: Path, tool: str, params: dict[str, Any], step: str, after: bool) -> None:
    async def run() -> None:
        kernel = await open_kernel(data)
        await call(kernel, "path", {})
        amy = await session(kernel)
        inject(Fault(step, after, kills=True))
        await kernel.call(amy, f"message.{tool}", params)

    asyncio.run(run())
    os._exit(0)  # the kernel is not closed: its threads would keep the process alive


@pytest.mark.parametrize(
    ("name", "steps"),
    [(name, STEPS if name == "split" else STEPS[2::4]) for name in CALLS],
)
async def test_call_killed_at_a_step_is_carried_out_whole_or_not_at_all(
    data: Path, tmp_path: Path, name: str, steps: Sequence[str]
) -> None:
    tool, params = CALLS[name]
    before = await state(data)
    done = shutil.copytree(data, tmp_path / "done")
    kernel = await open_kernel(done)
    await call(kernel, tool, params)
    await kernel.close()
    expected = await state(done)
    killed = 0
    for number, (step, after) in enumerate(moments(steps)):
        folder = shutil.copytree(data, tmp_path / str(number))
        ended = await in_a_process(run_and_die, folder, tool, params, step, after)
        killed += ended == -signal.SIGKILL
        found = await state(folder)
        assert found == (expected if (step, after) == ("COMMIT", True) else before) or (
            ended == 0 and found == expected
        ), (step, after)
    assert killed >= (5 if steps is STEPS else 3)


def play_and_die(data: Path, seed: int, step: str, after: bool, count: int) -> None:
    async def run() -> None:
        kernel = await open_kernel(data)
        actor = kernel.open_session(kernel.owner, "test")
        machine = Machine(kernel, (actor,), random.Random(seed))
        inject(Fault(step, after, kills=True, count=count))
        for _ in range(30):
            await machine.step()

    asyncio.run(run())
    os._exit(0)


async def test_random_conversation_killed_at_each_step_is_a_valid_tree_and_goes_on(
    data: Path,
) -> None:
    rng = random.Random(1)
    for seed, step in enumerate(STEPS[1::2]):
        after, count = rng.random() < 0.5, rng.randint(1, 12)
        await in_a_process(play_and_die, data, seed, step, after, count)
        await state(data)
    kernel = await open_kernel(data)
    actor = kernel.open_session(kernel.owner, "test")
    machine = Machine(kernel, (actor,), rng)
    for _ in range(5):
        await machine.step()
    await check_trees(kernel)
    await kernel.close()
