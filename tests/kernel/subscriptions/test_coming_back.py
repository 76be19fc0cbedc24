"""Subscriptions that begin at known versions are told what has changed since."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions import BlockEvent, BlockEventKind
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make
from tests.kernel.subscriptions.reader import Copy, ended, scribble, splice, state_of, subscribed


async def test_subscription_from_versions_sends_missing_blocks_in_document_order(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    blocks = [await make(f"block {number}") for number in range(5)]
    made = await subscribed(kernel, amy, from_versions={})
    assert [event.block_id for event in await ended(kernel, amy, made)] == blocks


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


@pytest.mark.parametrize("seed", range(3))
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
