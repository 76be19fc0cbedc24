"""`context.list`: how far each context has come, and what others have changed in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor

MESSAGE = {"role": "user", "kind": "text", "content": "hello"}


async def listed(kernel: Kernel, actor: Actor, **params: Any) -> dict[str, Any]:
    """The default context as the list says it."""
    result = await kernel.call(actor, "context.list", params)
    found: dict[str, Any] = result["contexts"][0]
    return found


async def test_list_counts_blocks_that_others_have_changed_since_the_seen_version(
    kernel: Kernel, amy: Actor
) -> None:
    ben = kernel.open_session(await kernel.principal("ben"), "test")
    await kernel.call(amy, "block.create", MESSAGE)
    block = (await kernel.call(ben, "block.create", MESSAGE))["block_id"]
    before = await listed(kernel, amy)
    assert before["context_version"] == (await kernel.context()).seq
    assert "changed" not in before
    assert (await listed(kernel, amy, seen={}))["changed"] == 1
    seen = {before["context_id"]: before["context_version"]}
    assert (await listed(kernel, amy, seen=seen))["changed"] == 0
    for _ in range(3):
        await kernel.call(ben, "block.append", {"block_id": block, "text": " more"})
    await kernel.call(ben, "block.create", MESSAGE)
    assert (await listed(kernel, amy, seen=seen))["changed"] == 2
    assert (await listed(kernel, ben, seen=seen))["changed"] == 0


async def test_list_counts_no_blocks_that_a_fork_has_only_copied(
    kernel: Kernel, amy: Actor
) -> None:
    ben = kernel.open_session(await kernel.principal("ben"), "test")
    await kernel.call(ben, "block.create", MESSAGE)
    await kernel.call(ben, "block.create", MESSAGE)
    await kernel.call(ben, "context.fork", {"context": "default", "label": "copy"})

    async def changed() -> int:
        result = await kernel.call(amy, "context.list", {"seen": {}})
        return next(int(one["changed"]) for one in result["contexts"] if one["label"] == "copy")

    assert await changed() == 0
    await kernel.call(ben, "block.create", {**MESSAGE, "context": "copy"})
    assert await changed() == 1


async def test_list_names_a_context_as_damaged_whose_record_cannot_be_read(
    kernel: Kernel, amy: Actor, data: Path, open_kernel: Any
) -> None:
    ben = kernel.open_session(await kernel.principal("ben"), "test")
    await kernel.call(ben, "block.create", MESSAGE)
    await kernel.close()
    with sqlite3.connect(data / "journal.db") as database:
        assert database.execute("UPDATE ops SET blocks = 'x' WHERE seq > 1").rowcount
    again: Kernel = await open_kernel()
    found = await listed(again, again.open_session(again.owner, "test"), seen={})
    assert "damaged" in found and "changed" not in found
