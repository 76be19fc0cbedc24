"""Content of an event of a block."""

from __future__ import annotations

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions.block_events import BlockEventKind, Origin
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Make
from tests.kernel.subscriptions.reader import ended, splice, subscribed


async def test_event_says_what_who_and_whose(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("one two", status="done")
    subscription = await subscribed(kernel, bo)
    await splice(kernel, bo, block, 4, "and a 😀 ")
    await splice(kernel, amy, block, 0, "x")
    await kernel.call(amy, "block.collapse", {"block_id": block})
    again = kernel.open_session(bo.principal, "test")
    await kernel.call(again, "block.exclude", {"block_id": block})
    new = await make("", role="user")
    events = await ended(kernel, bo, subscription)
    assert [one.version for one in events] == [2, 3, 4, 5, 1]
    assert [one.kind for one in events] == ["edited", "edited", "header", "header", "created"]
    origins = [Origin.OWN, Origin.OTHER, Origin.OTHER, Origin.OTHER, Origin.OTHER]
    assert [one.origin for one in events] == origins
    assert [(one.splices[0].offset, one.splices[0].insert) for one in events[:2]] == [
        (4, "and a 😀 "),
        (0, "x"),
    ]
    first = events[0]
    assert first.attribution == f"agent:{bo.principal.id}:splice"
    assert first.header is not None
    assert first.header.model_dump()["edited_after_done"]
    assert events[1].header is None
    assert events[2].header is not None
    assert events[2].header.model_dump()["collapsed"]
    assert (events[4].block_id, events[4].content) == (new, "")


async def test_subscription_to_named_blocks_receives_no_others(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    await kernel.create_context("other")
    here, unwanted = await make("1"), await make("2")
    there = await make("3", context="other")
    subscription = await subscribed(kernel, amy, block_ids=[here, there])
    for block in (unwanted, there, here, unwanted):
        await splice(kernel, amy, block, 0, "x")
    events = await ended(kernel, amy, subscription)
    assert [one.block_id for one in events] == [there, here]


async def test_streamed_text_arrives_flush_by_flush(kernel: Kernel, amy: Actor, make: Make) -> None:
    prompt = await make("go", status="done")
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
    new = {"role": "model", "kind": "text", "parent_id": prompt}
    block = (await kernel.call(aria, "block.create", new))["block_id"]
    subscription = await subscribed(kernel, amy, block_ids=[block])
    for number in range(50):
        stream = {"block_id": block, "text": f"word {number}\n", "stream": True}
        await kernel.call(aria, "block.append", stream)
    await kernel.call(aria, "block.status", {"block_id": block, "status": "done"})
    events = await ended(kernel, amy, subscription)
    assert events[0].header is not None
    assert events[0].header.status == "running"
    text = ""
    for event in events:
        for one in event.splices:
            assert one.offset == len(text)
            text += one.insert
    assert text == "".join(f"word {number}\n" for number in range(50))
    assert {one.attribution for one in events[:-1]} == {f"agent:{aria.principal.id}:append"}
    assert events[-1].kind is BlockEventKind.HEADER


COMPOSITE = {
    "type": "composite",
    "sections": [
        {"name": "notes", "content": {"type": "text"}},
        {"name": "log", "content": {"type": "log"}},
        {
            "name": "facts",
            "content": {"type": "map", "fields": [{"name": "hits", "field_type": "counter"}]},
        },
    ],
}


async def test_structured_block_is_told_part_by_part_and_one_part_can_be_followed(
    kernel: Kernel, amy: Actor
) -> None:
    new = {"role": "user", "kind": "text", "schema": COMPOSITE}
    block = (await kernel.call(amy, "block.create", new))["block_id"]
    everything = await subscribed(kernel, amy)
    notes = await subscribed(kernel, amy, block_ids=[block], section="notes")
    facts = await subscribed(kernel, amy, block_ids=[block], section="facts/hits")
    write = {"block_id": block, "section": "notes", "offset": 0, "insert": "hi 😀"}
    await kernel.call(amy, "block.splice", write)
    count = {"block_id": block, "section": "facts", "field": "hits", "by": 3}
    await kernel.call(amy, "block.increment", count)
    await kernel.call(amy, "block.append_log", {"block_id": block, "section": "log", "entry": "x"})
    told = await ended(kernel, amy, everything)
    assert [one.version for one in told] == [2, 3, 4]
    assert [(one.section, one.insert) for one in told[0].splices] == [("notes", "hi 😀")]
    assert [(one.path, one.value) for one in told[1].parts] == [("facts/hits", 3)]
    assert [one.path for one in told[2].parts] == ["log"]
    assert [one.version for one in await ended(kernel, amy, notes)] == [2]
    assert [one.version for one in await ended(kernel, amy, facts)] == [3]
    again = await subscribed(kernel, amy, block_ids=[block], section="notes", from_versions=[])
    assert [one.content for one in await ended(kernel, amy, again)] == ["hi 😀"]
    for params, code in (
        ({"section": "notes"}, ErrorCode.INVALID_PARAMS),
        ({"section": "nope", "block_ids": [block]}, ErrorCode.SCHEMA_VIOLATION),
    ):
        with raises(code):
            await kernel.call(amy, "block.subscribe", params)
