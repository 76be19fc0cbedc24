"""Subscriptions: every committed change, or a resync in its place."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions import BlockEvent, BlockEventKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Make
from tests.kernel.subscriptions.reader import Copy, ended, scribble, splice, state_of, subscribed


@pytest.mark.parametrize("seed", range(4))
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


@pytest.mark.parametrize("seed", range(4))
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


async def test_subscription_ends_with_its_session_and_with_the_kernel(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    of_bo = await subscribed(kernel, bo)
    of_amy = await subscribed(kernel, amy)
    waiting = asyncio.create_task(anext(of_amy))
    await kernel.close_session(bo)
    assert [event async for event in of_bo] == []
    await kernel.close()
    with raises(ErrorCode.NO_KERNEL):
        await waiting


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


@pytest.mark.parametrize(
    ("tool", "params", "code"),
    [
        ("block.subscribe", {"block_ids": ["default.amy.9"]}, ErrorCode.BLOCK_NOT_FOUND),
        ("block.subscribe", {"context": "nowhere"}, ErrorCode.CONTEXT_NOT_FOUND),
        ("block.subscribe", {"from_versions": [["default.amy.1"]]}, ErrorCode.INVALID_PARAMS),
        ("block.subscribe", {"from_versions": {"default.amy.1": "1"}}, ErrorCode.INVALID_PARAMS),
        ("block.subscribe", {"from_versions": {"default.amy.9": 1}}, ErrorCode.BLOCK_NOT_FOUND),
        (
            "block.subscribe",
            {"block_ids": ["default.amy.1"], "context": "other"},
            ErrorCode.BLOCK_NOT_FOUND,
        ),
        ("block.sync", {"versions": {"default.amy.1": -1}}, ErrorCode.INVALID_PARAMS),
        (
            "block.sync",
            {"versions": {"default.amy.1": 1, "other.amy.1": 1}},
            ErrorCode.BLOCK_NOT_FOUND,
        ),
    ],
)
async def test_subscription_to_unknown_target_is_rejected(
    kernel: Kernel, amy: Actor, make: Make, tool: str, params: dict[str, Any], code: ErrorCode
) -> None:
    await kernel.create_context("other")
    await make("x")
    await make("y", context="other")
    with raises(code):
        await kernel.call(amy, tool, params)
    assert kernel.subscriptions.claim(amy.session) == []
