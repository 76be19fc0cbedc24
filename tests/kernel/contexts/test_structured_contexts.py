"""Blocks with a schema where whole contexts are listed, searched, exported, forked and undone."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make

SCHEMA: dict[str, Any] = {
    "type": "composite",
    "sections": [
        {"name": "notes", "schema": {"type": "text"}},
        {
            "name": "task",
            "schema": {
                "type": "map",
                "fields": [
                    {"name": "title", "field_type": "text"},
                    {"name": "votes", "field_type": "counter"},
                    {"name": "effort", "field_type": "number", "required": True},
                ],
            },
        },
        {"name": "steps", "schema": {"type": "list"}, "read_only": True},
    ],
}


@pytest.fixture
async def paper(kernel: Kernel, call: Caller, bo: Actor, make: Make) -> str:
    """A block that two people have written in; its required field has no value."""
    block = await make(schema=SCHEMA, content=None)
    notes = {"block_id": block, "section": "notes"}
    await call("block.append", **notes, text="amy was here\n")
    await kernel.call(bo, "block.append", {**notes, "text": "漢字 and bo\n"})
    task = {"block_id": block, "section": "task"}
    await kernel.call(bo, "block.set_field", {**task, "field": "title", "value": "cellar"})
    await call("block.increment", **task, field="votes", by=3)
    steps = {"block_id": block, "section": "steps", "value": [1, {"b": None}]}
    await kernel.call(kernel.system, "block.push_item", steps)
    return block


async def exported(kernel: Kernel, actor: Actor, block: str) -> Any:
    return await kernel.call(actor, "block.export", {"block_id": block})


async def blamed(kernel: Kernel, actor: Actor, block: str, section: str) -> list[tuple[int, str]]:
    found = await kernel.call(actor, "block.blame", {"block_id": block, "section": section})
    return [(run["end"] - run["start"], run["username"]) for run in found["runs"]]


@pytest.mark.parametrize("way", ["import", "fork"])
async def test_copy_of_a_context_has_the_same_contents_and_authors(
    kernel: Kernel, amy: Actor, paper: str, way: str
) -> None:
    if way == "fork":
        await kernel.call(amy, "context.fork", {"context": "default", "label": "copy"})
    else:
        text = (await kernel.call(amy, "context.export", {}))["text"]
        await kernel.call(amy, "context.import", {"text": text, "label": "copy"})
    listed = await kernel.call(amy, "block.list", {"context": "copy"})
    [copy] = [one["block_id"] for one in listed["blocks"]]
    before, after = await exported(kernel, amy, paper), await exported(kernel, amy, copy)
    assert after["schema"] == before["schema"]
    assert after["content"] == before["content"]
    for section in ("notes", "task/title"):
        assert await blamed(kernel, amy, copy, section) == await blamed(kernel, amy, paper, section)
    votes = {"block_id": copy, "section": "task", "field": "votes"}
    assert (await kernel.call(amy, "block.increment", votes))["value"] == 4
    assert (await exported(kernel, amy, paper))["content"]["task"]["votes"] == 3


async def test_block_is_listed_and_found_as_it_is_rendered(call: Caller, paper: str) -> None:
    rendered = (await call("block.render", block_id=paper))["text"]
    [listed] = (await call("block.list"))["blocks"]
    assert (listed["summary"], listed["length"]) == ("## notes", len(rendered))
    for query in ("cellar", "漢字", "[read-only]"):
        found = await call("kernel.search", query=query, kinds=["file"])
        [match] = found["results"][0]["matches"]
        assert rendered.split("\n")[match["line"]] == match["content"]
    markdown = await call("context.export", format="markdown")
    assert rendered in markdown["text"]


async def test_undo_in_structured_content_reverts_own_writes_only(
    kernel: Kernel, amy: Actor, bo: Actor, paper: str
) -> None:
    await kernel.call(bo, "block.undo", {"block_id": paper})
    content = (await exported(kernel, amy, paper))["content"]
    assert content["task"] == {"title": "", "votes": 3, "effort": None}
    await kernel.call(amy, "block.undo", {"block_id": paper})
    await kernel.call(bo, "block.redo", {"block_id": paper})
    content = (await exported(kernel, amy, paper))["content"]
    assert content["task"] == {"title": "cellar", "votes": 0, "effort": None}
    assert content["notes"] == "amy was here\n漢字 and bo\n"
    assert content["steps"] == [[1, {"b": None}]]
