"""A random kernel is the same after it has been moved into a database of Postgres and back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.move import move_from_database, move_to_database
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from tests.clocks import ManualClock
from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.machine import Machine
from tests.kernel.invariants.world import World


async def open_kernel(folder: Path, store: str | None = None) -> Kernel:
    registry = Registry(KERNEL_TOOLS)
    clock = ManualClock()
    return await Kernel.open(
        folder, folder.parent, registry=registry, owner="amy", clock=clock, store=store
    )


async def everything(folder: Path, store: str | None = None) -> dict[str, Any]:
    """Return the export of each context, and who may do what."""
    kernel = await open_kernel(folder, store)
    try:
        amy = kernel.open_session(kernel.owner, "test")
        members = (await kernel.call(amy, "kernel.members", {}))["members"]
        for one in members:
            del one["sessions"]
        invitations = await kernel.call(amy, "kernel.invites", {})
        found: dict[str, Any] = {"members": members, "invitations": invitations}
        for one in (await kernel.call(amy, "context.list", {}))["contexts"]:
            asked = {"context": one["context_id"]}
            found[one["label"]] = await kernel.call(amy, "context.export", asked)
        return found
    finally:
        await kernel.close()


async def write_more(folder: Path) -> None:
    """Add what the machine has no steps for."""
    kernel = await open_kernel(folder)
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "context.fork", {"context": "default", "label": "copy"})
    block = {"role": "user", "kind": "text", "content": "with \0 and 😀", "status": "done"}
    made = await kernel.call(amy, "block.create", {**block, "context": "copy"})
    drift = {"context": "copy", "to": "default", "blocks": [made["block_id"]], "wake": False}
    await kernel.call(amy, "drift.push", drift)
    await kernel.call(amy, "kernel.invite", {"role": "editor", "name": "vera"})
    await kernel.call(amy, "file.create", {"path": f"{folder.name}.txt", "content": "milk\n"})
    await kernel.call(amy, "kernel.search", {"query": "with"})
    await kernel.search.wait_indexed()
    await kernel.close()


@cases(0.03)
async def test_random_kernel_moved_to_postgres_and_back_is_the_same(
    rng: random.Random, tmp_path: Path, store: str
) -> None:
    world = World(tmp_path, rng)
    await world.open()
    try:
        await Machine(world).run(steps=40)
    finally:
        await world.close()
    data = max(tmp_path.glob("data-*"), key=lambda one: int(one.name.partition("-")[2]))
    await write_more(data)
    before = await everything(data)
    rows = await move_to_database(data, store)
    back = tmp_path / "back"
    back.mkdir()
    assert move_from_database(store, back) == rows
    assert await everything(back) == before
    assert [str(one) for one in (await run_checks(back)).all()] == []
    shared = tmp_path / "shared"
    shared.mkdir()
    assert await everything(shared, store) == before
