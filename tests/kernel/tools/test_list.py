"""`block.list`: every filter works, depth counts generations, pages hold together.

`context.list`: how far each context has come, and what others have changed in it.
"""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.block_tree import BlockTree
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor, BlockHeader
from tests.kernel.kernel.calls import Caller, Make


async def listed(kernel: Kernel, actor: Actor, **params: Any) -> list[str]:
    """All pages."""
    found: list[str] = []
    while True:
        page = await kernel.call(actor, "block.list", params)
        found += [one["block_id"] for one in page["blocks"]]
        assert page["truncated"] == ("next" in page)
        if not page["truncated"]:
            return found
        params["after_block"] = page["next"]


async def test_list_filters_hold_alone_and_combined(kernel: Kernel, amy: Actor, make: Make) -> None:
    rng = random.Random(3)
    root = await make("root")
    made: list[tuple[str, dict[str, Any]]] = []
    for number in range(60):
        parent = rng.choice([root] + [block for block, _ in made])
        fields: dict[str, Any] = {
            "role": rng.choice(("user", "model", "tool", "system")),
            "kind": rng.choice(("text", "thinking", "file", "drift", "error")),
            "status": rng.choice(("running", "done")),
        }
        path = rng.choice((None, "src/a.py", "src/b/c.py", "docs/a.md", ""))
        extra = {"metadata": {"path": path}} if path is not None else {}
        given = {name: value for name, value in fields.items() if value != "running"}
        block = await make(str(number), parent_id=parent, **given, **extra)
        made.append((block, {**fields, "path": path, "parent": parent}))
    parents = {block: fields["parent"] for block, fields in made}

    def removes(block: str, above: str) -> int:
        """Generations between the two; 0 if there are none."""
        count = 0
        while block in parents:
            block, count = parents[block], count + 1
            if block == above:
                return count
        return 0

    for _ in range(150):
        wanted: dict[str, Any] = {}
        for name, values in (
            ("role", ("user", "model")),
            ("kind", ("text", "file")),
            ("status", ("pending", "done", "running")),
            ("path_prefix", ("src/", "docs/a.md", "nope", "")),
        ):
            if rng.random() < 0.4:
                wanted[name] = rng.choice(values)
        above, depth = None, 1
        if rng.random() < 0.6:
            above = wanted["parent_id"] = rng.choice([root] + [block for block, _ in made])
            if rng.random() < 0.6:
                depth = wanted["depth"] = rng.randint(1, 5)
        expected = [
            block
            for block, fields in made
            if all(
                fields[one] == wanted[one] for one in ("role", "kind", "status") if one in wanted
            )
            and (
                "path_prefix" not in wanted
                or (fields["path"] is not None and fields["path"].startswith(wanted["path_prefix"]))
            )
            and (above is None or 1 <= removes(block, above) <= depth)
        ]
        found = await listed(kernel, amy, **wanted, limit=rng.choice((1, 4, 100)))
        assert [block for block in found if block != root] == expected, wanted


async def test_pages_hold_every_block_once_while_others_create_blocks(
    call: Caller, make: Make
) -> None:
    rng = random.Random(4)
    there = [await make(str(n)) for n in range(40)]
    found: list[str] = []
    params: dict[str, Any] = {"limit": 3}
    while True:
        page = await call("block.list", **params)
        found += [one["block_id"] for one in page["blocks"]]
        if not page["truncated"]:
            break
        params["after_block"] = page["next"]
        await make("new", after=rng.choice(there))
    assert [block for block in found if block in there] == there
    assert len(set(found)) == len(found)


async def test_next_page_is_of_the_context_of_its_block(call: Caller, make: Make) -> None:
    await call.kernel.create_context("other")
    blocks = [await make(str(n), context="other") for n in range(3)]
    page = await call("block.list", context="other", limit=1)
    rest = await call("block.list", after_block=page["next"])
    assert [one["block_id"] for one in rest["blocks"]] == blocks[1:]


async def test_list_waits_for_disk_so_that_no_block_is_dirty(
    kernel: Kernel, context: Context, amy: Actor, make: Make
) -> None:
    block = await make("a", kind="file", metadata={"path": "a"})
    context.write(amy, "append", lambda: context.document.append(block, "b"), blocks=[block])
    assert context.blocks.persisted[block] == 1
    page = await kernel.call(amy, "block.list", {})
    assert [(one["version"], one["dirty"]) for one in page["blocks"]] == [(2, False)]
    assert context.blocks.persisted[block] == 2


def header(block: str, order: str, parent: str | None) -> BlockHeader:
    return BlockHeader(block, "text", "user", "done", order, "", "amy", parent=parent)


def test_parents_that_run_in_a_circle_are_followed_once() -> None:
    document = Document(1)
    ring = [f"{'0' * 32}.{'1' * 32}.{n}" for n in range(5)]
    for at, block in enumerate(ring):
        document.create_block(header(block, f"a{at}", ring[at - 1]))
    family = BlockTree(document)
    assert family.descendants(ring[0], 1_000_000) == ring[1:]
    assert family.descendants(ring[0], 2) == ring[1:3]


def test_index_of_children_follows_the_document() -> None:
    rng = random.Random(8)
    document = Document(1)
    blocks = [f"{'0' * 32}.{'1' * 32}.{n}" for n in range(200)]
    document.create_block(header(blocks[0], "a0", None))
    family = BlockTree(document)
    assert family.descendants(blocks[0], 3) == []
    for at, block in enumerate(blocks[1:], 1):
        document.create_block(header(block, f"b{at:03}", rng.choice(blocks[:at])))
        document.set_fields(rng.choice(blocks[1 : at + 1]), parent=blocks[0])
    fresh = BlockTree(document)
    for block in blocks:
        for depth in (1, 3):
            assert family.descendants(block, depth) == fresh.descendants(block, depth)
    assert document.header(blocks[0])._replace().parent is None


MESSAGE = {"role": "user", "kind": "text", "content": "hello"}


async def listed_context(kernel: Kernel, actor: Actor, **params: Any) -> dict[str, Any]:
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
    before = await listed_context(kernel, amy)
    assert before["context_version"] == (await kernel.context()).seq
    assert "changed" not in before
    assert (await listed_context(kernel, amy, seen={}))["changed"] == 1
    seen = {before["context_id"]: before["context_version"]}
    assert (await listed_context(kernel, amy, seen=seen))["changed"] == 0
    for _ in range(3):
        await kernel.call(ben, "block.append", {"block_id": block, "text": " more"})
    await kernel.call(ben, "block.create", MESSAGE)
    assert (await listed_context(kernel, amy, seen=seen))["changed"] == 2
    assert (await listed_context(kernel, ben, seen=seen))["changed"] == 0


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
    found = await listed_context(again, again.open_session(again.owner, "test"), seen={})
    assert "damaged" in found and "changed" not in found
