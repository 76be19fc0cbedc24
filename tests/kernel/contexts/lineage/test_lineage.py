"""Lineage of a context: who made it, and of which version of which context it is a fork."""

from __future__ import annotations

import json
from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused


async def listed(kernel: Kernel, actor: Actor) -> dict[str, dict[str, Any]]:
    contexts = (await kernel.call(actor, "context.list", {}))["contexts"]
    return {one["label"]: one for one in contexts}


def lineage(info: dict[str, Any]) -> tuple[str, str | None, int | None]:
    return info["username"], info.get("source_label"), info.get("source_version")


async def test_context_names_its_creator_and_its_source_also_after_a_restart(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, open_kernel: OpenKernel
) -> None:
    await make("one")
    made = await kernel.call(bo, "context.create", {"label": "notes"})
    fork = await kernel.call(bo, "context.fork", {"context": "default", "label": "left"})
    await kernel.call(amy, "context.fork", {"context": "left", "label": "leaf"})
    expected = {
        "default": ("system", None, None),
        "notes": ("bo", None, None),
        "left": ("bo", "default", fork["source_version"]),
        "leaf": ("amy", "left", fork["context_version"]),
    }
    assert (made["creator"], lineage(made)) == (bo.principal.id, expected["notes"])
    for _ in range(2):
        found = await listed(kernel, amy)
        assert {label: lineage(info) for label, info in found.items()} == expected
        assert found["leaf"]["source_context"] == found["left"]["context_id"]
        await kernel.close()
        kernel = await open_kernel()
        amy = kernel.open_session(kernel.owner, "test")


async def test_fork_follows_the_label_of_its_source(
    kernel: Kernel, amy: Actor, call: Caller
) -> None:
    await call("context.create", label="notes")
    await call("context.fork", context="notes", label="copy")
    await call("context.rename", context="notes", label="ideas")
    assert (await listed(kernel, amy))["copy"]["source_label"] == "ideas"


async def test_export_of_a_fork_says_where_it_comes_from_and_is_imported(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, call: Caller
) -> None:
    await make("one")
    fork = await kernel.call(bo, "context.fork", {"context": "default", "label": "copy"})
    text = (await call("context.export", context="copy"))["text"]
    header = json.loads(text.splitlines()[0])
    assert (header["creator"], header["source_label"]) == ("bo", "default")
    assert header["source_version"] == fork["source_version"]
    await call("context.import", text=text, label="again")
    assert lineage((await listed(kernel, amy))["again"]) == ("amy", None, None)


async def test_blame_in_a_fork_names_versions_that_can_be_read(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("one\n")
    for number in range(3):
        await kernel.call(bo, "block.append", {"block_id": block, "text": f"bo {number}\n"})
    for source, copy in (("default", "left"), ("left", "leaf")):
        await kernel.call(amy, "context.fork", {"context": source, "label": copy})
        (block,) = (await kernel.context(copy)).document.block_ids()
        splice = {"block_id": block, "offset": 0, "insert": f"{copy}\n"}
        await kernel.call(amy, "block.splice", splice)
    read = await kernel.call(amy, "block.read", {"block_id": block})
    runs = (await kernel.call(amy, "block.blame", {"block_id": block}))["runs"]
    own, left, *first = runs
    assert "source_block" not in own
    assert left["source_block_name"].startswith("left.")
    assert {one["source_block_name"].split(".")[0] for one in first} == {"default"}
    for run in runs:
        at = {"block_id": run.get("source_block", block), "version": run["version"]}
        then = (await kernel.call(amy, "block.read", at))["content"]
        assert read["content"][run["start"] : run["end"]] in then
        by = {one["version"]: one["username"] for one in await versions(kernel, amy, at)}
        assert by[run["version"]] == run["username"]
    beyond = {"block_id": block, "version": first[-1]["version"]}
    error = await refused(kernel, amy, "block.read", beyond)
    assert error.code is ErrorCode.INVALID_PARAMS


async def versions(kernel: Kernel, actor: Actor, at: dict[str, Any]) -> list[dict[str, Any]]:
    params = {"block_id": at["block_id"]}
    return list((await kernel.call(actor, "block.history", params))["versions"])
