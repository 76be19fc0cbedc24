"""Drifts of everything that a block can be, and of what nobody may have come over."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.block_metadata import DRIFT, is_cut_out
from antiphon_kernel.types.drift import drift_origin
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.bench.filled import Filled
from tests.kernel.drift.staging import content
from tests.kernel.kernel.calls import Caller, Make
from tests.kernel.tools.files import PDF, PNG, REPORT, sent

FAMILY: Final = "👩‍👩‍👧 e\u0301 日本語 naïve\r\n\x00\x1b[31m\u202e\ud7ff\U0010ffff"


@pytest.fixture
async def notes(call: Caller) -> Context:
    await call("context.create", label="notes")
    return await call.context("notes")


@pytest.mark.sqlite
async def test_texts_of_every_kind_arrive_as_they_are(
    kernel: Kernel, call: Caller, make: Make, notes: Context, data: Any
) -> None:
    texts = ["", " ", "\n", FAMILY, "x" * 100_000]
    blocks = [await make(one, role="user", status="done") for one in texts]
    pushed = await call("drift.push", to="notes", blocks=blocks)
    assert [text for _, _, text in content(notes)] == ["", *texts]
    assert [
        (await call("block.read", block_id=one))["content"] for one in pushed["blocks"]
    ] == texts
    for block, copy in zip(blocks, pushed["blocks"], strict=True):
        before, after = [
            [
                (run["start"], run["end"], run["username"], run["time"])
                for run in (await call("block.blame", block_id=one))["runs"]
            ]
            for one in (block, copy)
        ]
        assert before == after
    await kernel.close()
    assert (await run_checks(data)).clean


async def test_many_blocks_drift_and_at_most_a_thousand(call: Caller, notes: Context) -> None:
    blocks = await Filled(call.kernel, await call.context()).add_blocks(40, "x")
    with pytest.raises(AntiphonError) as caught:
        await call("drift.push", to="notes", blocks=(blocks * 26)[:1_001])
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    assert "1000" in caught.value.message
    await call("drift.push", to="notes", blocks=blocks)
    assert [text for _, _, text in content(notes)][1:] == ["x"] * 40
    await call("block.undo", context="notes")
    assert all(one.excluded for one in notes.document.headers(notes.document.block_ids()))


@pytest.mark.sqlite
async def test_contents_with_a_schema_arrive_whole_and_apart(
    kernel: Kernel, call: Caller, make: Make, notes: Context, data: Any
) -> None:
    schema = {
        "type": "map",
        "fields": [
            {"name": "votes", "field_type": "counter", "default": 2},
            {"name": "title", "field_type": "text"},
            {"name": "tags", "field_type": "list", "item_schema": {"type": "text"}},
        ],
    }
    table = await make(schema=schema, content={"title": "T 😀", "tags": ["a", "b"]}, status="done")
    await call("block.increment", block_id=table, field="votes", by=3)
    log = await make(schema={"type": "log"}, content=None, status="done")
    await call("block.append_log", block_id=log, entry={"n": 1})
    report = await make(schema=REPORT, content=None, status="done")
    blocks = [table, log, report]
    pushed = await call("drift.push", to="notes", blocks=blocks)
    source = (await call.context()).document
    for block, copy in zip(blocks, pushed["blocks"], strict=True):
        assert notes.document.schema(copy) == source.schema(block)
        assert read_content(notes.document, copy) == read_content(source, block)
    await call("block.increment", block_id=pushed["blocks"][0], field="votes", by=1)
    votes = [
        (await call("block.get", block_id=one, field="votes"))["value"]
        for one in (table, pushed["blocks"][0])
    ]
    assert votes == [5, 6]
    await call("block.undo", context="notes")
    await kernel.close()
    assert (await run_checks(data)).clean


async def test_files_go_with_their_message_and_results_with_their_call(
    kernel: Kernel, call: Caller, make: Make, aria: Actor, notes: Context
) -> None:
    message = await make("see", role="user", status="done")
    await call("block.attach", block_id=message, files=[sent("a.png", PNG), sent("b.pdf", PDF)])
    asked = {"kind": "tool_call", "parent_id": message, "status": "done", "content": "ls"}
    made = await kernel.call(aria, "block.create", asked | {"metadata": {"tool_kind": "shell"}})
    result = {
        "kind": "tool_result",
        "parent_id": made["block_id"],
        "content": "x",
        "status": "done",
    }
    await kernel.call(aria, "block.create", result)
    pushed = await call("drift.push", to="notes", blocks=[message, made["block_id"]])
    headers = [notes.document.header(one) for one in pushed["blocks"]]
    kinds = [str(one.kind) for one in headers]
    assert sorted(kinds) == ["file", "file", "text", "tool_call", "tool_result"]
    by_kind = {str(one.kind): one for one in headers}
    assert by_kind["tool_result"].parent == by_kind["tool_call"].id
    files = [one for one in headers if one.kind == "file"]
    assert {one.parent for one in files} == {by_kind["text"].id}
    assert {one.media_type for one in files} == {"image/png", "application/pdf"}
    assert all([await kernel.journal.blob(str(one.blob)) for one in files])


async def test_what_is_being_written_arrives_as_it_is_and_ended(
    kernel: Kernel, call: Caller, make: Make, aria: Actor, notes: Context
) -> None:
    prompt = await make("?", role="user", status="done")
    made = await kernel.call(
        aria, "block.create", {"kind": "text", "parent_id": prompt, "content": "so "}
    )
    running = made["block_id"]
    await kernel.call(aria, "block.append", {"block_id": running, "text": "far"})
    pushed = await call("drift.push", to="notes", blocks=[running])
    await kernel.call(aria, "block.append", {"block_id": running, "text": " and on"})
    header = notes.document.header(pushed["blocks"][0])
    assert (header.status, header.stop_reason) == ("error", "interrupted")
    assert notes.document.text(header.id) == "so far"
    source = await call.context()
    assert source.document.header(running).status == "running"
    assert source.document.text(running) == "so far and on"


async def test_pushes_at_once_arrive_each_whole_and_behind_the_other(
    call: Caller, make: Make, notes: Context
) -> None:
    blocks = [await make(f"{at}", role="user", status="done") for at in range(3)]
    pushed = await asyncio.gather(
        *(call("drift.push", to="notes", blocks=blocks) for _ in range(5))
    )
    together = [one for drift in pushed for one in (drift["block_id"], *drift["blocks"])]
    assert sorted(together) == sorted(one for one, _, _ in content(notes))
    order = notes.document.order.index
    for drift in pushed:
        places = [order(one) for one in (drift["block_id"], *drift["blocks"])]
        assert places == list(range(places[0], places[0] + 4))


async def test_contexts_push_to_each_other_at_once(
    call: Caller, make: Make, notes: Context
) -> None:
    here = await make("here", role="user", status="done")
    there = await make("there", role="user", status="done", context="notes")
    await asyncio.gather(
        call("drift.push", to="notes", blocks=[here]),
        call("drift.pull", source="notes", blocks=[there]),
    )
    assert [text for _, _, text in content(notes)] == ["there", "", "here"]
    assert [text for _, _, text in content(await call.context())] == ["here", "", "there"]


async def test_drift_names_where_it_came_from_after_each_way_that_it_goes(
    call: Caller, make: Make, notes: Context
) -> None:
    """By a fork, by an export and an import, and by a drift of the whole drift."""
    default = await call.context()
    await call("drift.push", to="notes", blocks=[await make("x", role="user", status="done")])
    await call("context.create", label="third")
    await call("context.fork", context="notes", label="fork")
    exported = (await call("context.export", context="notes"))["text"]
    await call("context.import", text=exported, label="imported")
    for label in ("notes", "fork", "imported"):
        context = await call.context(label)
        blocks = [one for one, _, _ in content(context)]
        again = await call("drift.pull", source=label, context="third", blocks=blocks)
        third = await call.context("third")
        origin = drift_origin(third.document.header(again["block_id"]).metadata)
        assert origin is not None and origin.context == context.id
        assert origin.lineage == (default.id,), label
        copies = [third.document.header(one) for one in again["blocks"]]
        assert [one.parent for one in copies] == [again["block_id"], copies[0].id]
        assert {one.metadata[DRIFT] for one in copies} == {again["drift_id"]}


async def test_what_was_hidden_of_a_drift_stays_hidden_when_it_comes_back(
    call: Caller, make: Make, bo: Actor, notes: Context
) -> None:
    blocks = [await make(text, role="user", status="done") for text in ("a", "b", "c")]
    pushed = await call("drift.push", to="notes", blocks=blocks)
    hidden, edited, _ = pushed["blocks"]
    await call("block.exclude", block_id=hidden)
    edit = {"block_id": edited, "offset": 1, "insert": " bo's"}
    await call.kernel.call(bo, "block.splice", edit)
    for _ in range(2):
        await call("block.undo", context="notes")
        await call("block.exclude", block_id=edited)
        shown = [one.excluded for one in map(notes.document.header, pushed["blocks"])]
        assert shown == [True, True, True]
        await call("block.redo", context="notes")
        shown = [one.excluded for one in map(notes.document.header, pushed["blocks"])]
        assert shown == [True, True, False]
    assert not any(is_cut_out(notes.document.header(one)) for one in pushed["blocks"])
