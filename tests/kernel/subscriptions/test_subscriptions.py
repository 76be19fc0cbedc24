"""Subscriptions: every committed change, or a resync in its place.

A reader knows a context from nothing but events, and others write in it.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions import BlockEvent, BlockEventKind, Origin, Subscription
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make


class Copy:
    """Knowledge of a reader, from nothing but events."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.kinds: list[BlockEventKind] = []

    def take(self, event: BlockEvent) -> None:
        self.kinds.append(event.kind)
        block = event.block_id
        if event.from_version is None:
            assert event.header is not None
            self.texts[block] = event.content
        else:
            assert event.from_version == self.versions[block]
            text = self.texts[block]
            for splice in event.splices:
                end = splice.offset + splice.delete_count
                assert end <= len(text)
                text = text[: splice.offset] + splice.insert + text[end:]
            self.texts[block] = text
        self.versions[block] = event.version

    async def follow(self, subscription: Subscription) -> None:
        async for event in subscription:
            self.take(event)


async def subscribed(kernel: Kernel, actor: Actor, **params: Any) -> Subscription:
    made = await kernel.call(actor, "block.subscribe", params)
    return kernel.subscriptions.find(actor, made["subscription"])


async def ended(kernel: Kernel, actor: Actor, subscription: Subscription) -> list[BlockEvent]:
    """Everything that is still to come of it."""
    await kernel.call(actor, "block.unsubscribe", {"subscription": subscription.id})
    return [event async for event in subscription]


async def splice(kernel: Kernel, actor: Actor, block: str, offset: int, insert: str) -> None:
    params = {"block_id": block, "offset": offset, "insert": insert}
    await kernel.call(actor, "block.splice", params)


async def state_of(kernel: Kernel) -> tuple[dict[str, str], dict[str, int]]:
    context = await kernel.context()
    blocks = context.document.block_ids()
    return (
        {block: context.document.text(block) for block in blocks},
        {block: context.blocks.version(block) for block in blocks},
    )


async def scribble(
    kernel: Kernel, actors: list[Actor], blocks: list[str], rng: random.Random, count: int
) -> None:
    """Random work of several people."""
    context = await kernel.context()
    for _ in range(count):
        actor, block = rng.choice(actors), rng.choice(blocks)
        length = len(context.document.text(block))
        match rng.randrange(8):
            case 0:
                new = {"kind": "file", "content": rng.choice(("", "neu 😀\n"))}
                blocks.append((await kernel.call(actor, "block.create", new))["block_id"])
            case 1:
                await kernel.call(actor, "block.collapse", {"block_id": block})
            case 2:
                with suppress(AntiphonError):  # nothing_to_undo
                    await kernel.call(actor, "block.undo", {"block_id": block})
            case 3:
                other = rng.choice(blocks)
                if other != block:
                    await kernel.call(actor, "block.move", {"block_id": block, "after": other})
            case _:
                at = rng.randint(0, length)
                params = {
                    "block_id": block,
                    "offset": at,
                    "delete_count": rng.randint(0, min(3, length - at)),
                    "insert": rng.choice(("", "x", "漢字", "😀\n")),
                }
                await kernel.call(actor, "block.splice", params)


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


async def test_resubscriber_receives_patch_from_its_version(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, open_kernel: Any
) -> None:
    block, same = await make("line one\nline two\n", status="done"), await make("same")
    copy = Copy()
    for event in (await kernel.call(amy, "block.sync", {}))["new_blocks"]:
        copy.take(BlockEvent.model_validate(event))
    await splice(kernel, bo, block, 5, "number ")
    await splice(kernel, bo, block, 0, "😀")
    fresh = await make("new")
    await kernel.close()
    again = await open_kernel()
    amy = again.open_session(again.owner, "test")
    known = list(copy.versions.items())
    subscription = await subscribed(again, amy, from_versions=known)
    await splice(again, amy, block, 1, "!")
    events = await ended(again, amy, subscription)
    for event in events:
        copy.take(event)
    assert (copy.texts, copy.versions) == await state_of(again)
    assert {one.block_id for one in events} == {block, fresh}
    assert same not in {one.block_id for one in events}
    patch = next(one for one in events if one.block_id == block)
    assert patch.from_version == 1
    assert sum(len(one.insert) for one in patch.splices) <= len("number 😀!")


async def test_version_that_never_was_is_answered_with_the_block(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make("x")
    for version in (0, 99):
        subscription = await subscribed(kernel, amy, from_versions={block: version})
        events = await ended(kernel, amy, subscription)
        assert [(one.kind, one.content) for one in events] == [(BlockEventKind.RESYNC, "x")]
        answer = await kernel.call(amy, "block.sync", {"versions": {block: version}})
        assert [one["content"] for one in answer["patches"]] == ["x"]


@pytest.mark.parametrize("seed", range(2))
async def test_syncing_in_small_steps_brings_everything(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, seed: int
) -> None:
    rng = random.Random(seed)
    blocks = [await make("start\n")]
    copy = Copy()
    for _ in range(6):
        await scribble(kernel, [amy, bo], blocks, rng, 15)
        while True:
            versions = list(copy.versions.items())
            answer = await kernel.call(amy, "block.sync", {"versions": versions, "limit": 2})
            assert len(answer["patches"]) + len(answer["new_blocks"]) <= 2
            for event in answer["patches"] + answer["new_blocks"]:
                copy.take(BlockEvent.model_validate(event))
            if not answer["truncated"]:
                break
        assert (copy.texts, copy.versions) == await state_of(kernel)


@pytest.mark.parametrize("seed", range(2))
async def test_reader_that_keeps_up_has_the_same_texts_and_versions(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, seed: int
) -> None:
    rng = random.Random(seed)
    blocks = [await make("start\n")]
    first = await kernel.call(amy, "block.sync", {})
    copy = Copy()
    for event in first["new_blocks"]:
        copy.take(BlockEvent.model_validate(event))
    subscription = await subscribed(kernel, amy)
    reading = asyncio.create_task(copy.follow(subscription))
    await scribble(kernel, [amy, bo], blocks, rng, 60)
    await kernel.call(amy, "block.unsubscribe", {"subscription": subscription.id})
    await reading
    assert (copy.texts, copy.versions) == await state_of(kernel)
    assert BlockEventKind.RESYNC not in copy.kinds


@pytest.mark.parametrize("seed", range(2))
async def test_reader_that_reads_now_and_then_ends_with_the_same(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = kernel.limits.model_copy(update={"subscription_events": 5})
    monkeypatch.setattr(kernel.subscriptions, "_limits", small)
    rng = random.Random(seed)
    blocks = [await make("start\n")]
    subscription = await subscribed(kernel, amy, from_versions=[])
    copy = Copy()
    for _ in range(12):
        await scribble(kernel, [amy, bo], blocks, rng, rng.randrange(12))
        for _ in range(rng.randrange(5)):
            try:
                async with asyncio.timeout(0.05):
                    copy.take(await anext(subscription))
            except TimeoutError:
                break
    for event in await ended(kernel, amy, subscription):
        copy.take(event)
    assert (copy.texts, copy.versions) == await state_of(kernel)
    assert BlockEventKind.RESYNC in copy.kinds


async def test_reader_that_stops_waiting_misses_nothing(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    blocks = [await make(f"block {number}") for number in range(20)]
    for block in blocks:
        await splice(kernel, amy, block, 0, "changed ")
    subscription = await subscribed(kernel, amy, from_versions=dict.fromkeys(blocks, 1))
    told: list[str] = []
    for number in range(60):
        reading = asyncio.ensure_future(anext(subscription))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
        if not reading.cancelled():
            told.append(reading.result().block_id)
    told += [event.block_id for event in await ended(kernel, amy, subscription)]
    assert sorted(told) == sorted(blocks)


async def test_reader_that_never_reads_costs_a_bounded_queue_and_gets_the_last_state(
    kernel: Kernel, amy: Actor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = kernel.limits.model_copy(
        update={"subscription_events": 10, "subscription_code_points": 500}
    )
    monkeypatch.setattr(kernel.subscriptions, "_limits", small)
    block, other = await make("a"), await make("b")
    subscription = await subscribed(kernel, amy)
    for number in range(60):
        await splice(kernel, amy, block, 0, f"{number} " * 10)
    await splice(kernel, amy, other, 0, "late")
    events = await ended(kernel, amy, subscription)
    assert len(events) <= 11
    copy = Copy()
    copy.texts, copy.versions = {other: "b"}, {other: 1}
    for event in events:
        copy.take(event)
    assert (copy.texts, copy.versions) == await state_of(kernel)
    assert [one.kind for one in events if one.block_id == block] == [BlockEventKind.RESYNC]


@pytest.mark.sqlite
async def test_subscription_receives_nothing_of_failed_commit(
    kernel: Kernel, amy: Actor, make: Make, data: Path
) -> None:
    block = await make("x")
    subscription = await subscribed(kernel, amy)
    async with aiosqlite.connect(data / "journal.db") as database:
        broken = "CREATE TRIGGER broken BEFORE INSERT ON ops BEGIN SELECT RAISE(ABORT, 'no'); END"
        await database.execute(broken)
        await database.commit()
        with pytest.raises(AntiphonError):
            await splice(kernel, amy, block, 0, "lost")
        with raises(ErrorCode.STORAGE_FAILED):
            await anext(subscription)
        await database.execute("DROP TRIGGER broken")
        await database.commit()
    again = await subscribed(kernel, amy, from_versions={block: 1})
    await splice(kernel, amy, block, 0, "kept")
    events = await ended(kernel, amy, again)
    assert [(one.version, one.splices[0].insert) for one in events] == [(2, "kept")]


async def test_subscription_ends_with_its_session(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    of_bo = await subscribed(kernel, bo)
    await kernel.close_session(bo)
    assert [event async for event in of_bo] == []


async def test_subscription_of_ending_kernel_says_what_is_interrupted_then_that_it_ends(
    kernel: Kernel, amy: Actor, call: Caller, make: Make
) -> None:
    block = await make(role="model", parent_id=await make("Go on.", role="user"))
    subscription = await subscribed(kernel, amy)
    await call("block.status", block_id=block, status="running")
    heard = []

    async def listen() -> None:
        async for event in subscription:
            assert event.header is not None
            heard.append(event.header.status)

    listening = asyncio.create_task(listen())
    await kernel.close()
    with raises(ErrorCode.NO_KERNEL):
        await listening
    assert heard == ["running", "error"]


async def test_unsubscribe_of_foreign_subscription_is_rejected(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    subscription = await subscribed(kernel, bo)
    for actor, identity in ((amy, subscription.id), (bo, "nothing")):
        with raises(ErrorCode.INVALID_PARAMS):
            await kernel.call(actor, "block.unsubscribe", {"subscription": identity})
    block = await make("x")
    assert (await anext(subscription)).block_id == block


async def test_session_may_not_have_endlessly_many(kernel: Kernel, amy: Actor) -> None:
    limit = kernel.limits.subscriptions_per_session
    made = [await subscribed(kernel, amy) for _ in range(limit)]
    with raises(ErrorCode.TOO_LARGE):
        await subscribed(kernel, amy)
    await ended(kernel, amy, made[0])
    await subscribed(kernel, amy)
