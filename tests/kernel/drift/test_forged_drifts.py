"""Blocks that say of themselves that they came with a drift, and copies that are no more than that.

Only the kernel says where a block came from: neither a tool nor a raw update of a client does.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation.sources_pool import find_pool
from antiphon_kernel.limits import Limits
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.block_metadata import DRIFT, stands_for_earlier
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.drift.staging import content
from tests.kernel.kernel.calls import Caller, Make, OpenKernel
from tests.kernel.tools.files import PNG, sent
from tests.kernel.validation.peers import Peer, refused

ORIGIN: Final = {
    "id": "1",
    "context": "0" * 32,
    "label": "board",
    "version": 1,
    "by": "amy",
    "wakes": True,
}


@pytest.fixture
async def notes(call: Caller) -> Context:
    await call("context.create", label="notes")
    return await call.context("notes")


@pytest.mark.parametrize("said", [ORIGIN, "1", {"id": "1"}, 1, None])
async def test_nobody_says_that_a_block_came_with_a_drift(
    call: Caller, bo: Actor, context: Context, said: Any
) -> None:
    params = {"content": "x", "metadata": {DRIFT: said}, "status": "done"}
    for kind in ("text", "drift"):
        error = await call.refused("block.create", kind=kind, **params)
        assert error.code is ErrorCode.INVALID_PARAMS
    client = Peer(context)
    client.draft(bo, "x", metadata=json.dumps({DRIFT: said}), status="done")
    await refused(context, bo, client.update(), ErrorCode.PERMISSION_DENIED)


async def test_block_of_kind_drift_without_an_origin_drifts_like_any(
    call: Caller, make: Make, notes: Context
) -> None:
    block = await make("mine", kind="drift", status="done", metadata={"drift_kind": "merge"})
    pushed = await call("drift.push", to="notes", blocks=[block])
    assert [text for _, _, text in content(notes)] == ["", "mine"]
    items = (await call("context.layout", context="notes"))["items"]
    shown = [one["type"] for one in items if one.get("block_id") in pushed["blocks"]]
    assert shown == ["user.attachment"]


async def test_reply_to_a_drift_is_not_taken_for_a_part_of_it(
    call: Caller, make: Make, bo: Actor
) -> None:
    """A client says in its draft which block it was copied from, as it may."""
    await make("first\n", role="user", status="done")
    await call("context.fork", context="default", label="fork")
    new = await make("new\n", role="user", status="done", context="fork")
    merged = await call("drift.merge", source="fork")
    target = await call.context()
    client = Peer(target)
    fork = await call.context("fork")
    forged = client.draft(
        bo, "bo's own", parent=merged["block_id"], source_block=new, source_context=fork.id
    )
    await client.send(bo)
    await call("block.splice", block_id=new, offset=0, insert="really ")
    await call("drift.merge", source="fork")
    assert target.document.text(forged) == "bo's own"
    (copy,) = merged["blocks"]
    assert target.document.text(copy) == "really new\n"


async def test_summary_and_sources_of_another_context_are_none_here(
    call: Caller, make: Make, notes: Context
) -> None:
    await make("said before", role="user", status="done", context="notes")
    for number in range(8):
        prompt = await make(f"question {number} " + "x" * 4_000, role="user", status="done")
        await make("answer " * 500, role="model", parent_id=prompt, status="done")
    summary = (await call("context.compact", budget=3_000))["block_id"]
    await call("source.add", sources=[{"url": "https://example.org", "title": "T", "text": "t"}])
    pool = find_pool((await call.context()).document)
    assert pool is not None
    pushed = await call("drift.push", to="notes", blocks=[summary, pool])
    items = (await call("context.layout", context="notes"))["items"]
    assert any("said before" in one["text"] for one in items)
    assert find_pool(notes.document) is None
    copies = {notes.document.text(one) for one in pushed["blocks"]}
    assert (await call.context()).document.text(summary) in copies
    await call("context.fork", context="notes", label="fork")
    exported = (await call("context.export", context="notes"))["text"]
    await call("context.import", text=exported, label="imported")
    for label in ("notes", "fork", "imported"):
        document = (await call.context(label)).document
        headers = map(document.header, document.block_ids())
        assert not any(stands_for_earlier(one, "text") for one in headers), label


async def test_what_was_hidden_beside_a_message_does_not_go_with_it(
    call: Caller, make: Make, notes: Context
) -> None:
    message = await make("see", role="user", status="done")
    files = await call("block.attach", block_id=message, files=[sent("a.png", PNG)])
    (hidden,) = [one["block_id"] for one in files["attachments"]]
    await call("block.exclude", block_id=hidden)
    pushed = await call("drift.push", to="notes", blocks=[message])
    assert [text for _, _, text in content(notes)] == ["", "see"]
    assert len(pushed["blocks"]) == 1


@pytest.mark.sqlite
async def test_header_of_the_largest_size_and_the_longest_chain_arrive_sound(
    open_kernel: OpenKernel, data: Any
) -> None:
    limits = Limits(value_code_points=400, parent_depth=8)
    kernel = await open_kernel(limits)
    call = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    await call("context.create", label="notes")
    empty = len(json.dumps({"mine": ""}))
    mine = {"mine": "x" * (limits.value_code_points - empty)}
    block = await call("block.create", kind="text", status="done", metadata=mine, content="1")
    chain = [block["block_id"]]
    for number in range(2, limits.parent_depth + 1):
        made = await call(
            "block.create", kind="text", status="done", content=f"{number}", parent_id=chain[-1]
        )
        chain.append(made["block_id"])
    await call("drift.push", to="notes", blocks=chain)
    notes = await call.context("notes")
    assert [text for _, _, text in content(notes)][1:] == [str(n + 1) for n in range(len(chain))]
    await kernel.close()
    assert [str(one) for one in (await run_checks(data)).all()] == []
