"""Counters: increments add up exactly, also those that happen at once."""

from __future__ import annotations

import asyncio

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, refused
from tests.kernel.tools.report import TASK, value


async def test_counters_count_exactly(kernel: Kernel, amy: Actor, report: str) -> None:
    votes = {"block_id": report, "section": "task", "field": "votes"}
    for by in (0.1, 0.2, 10**25):
        await kernel.call(amy, "block.increment", {**votes, "by": by})
    done = await kernel.call(amy, "block.increment", {**votes, "by": -2})
    assert done["value"] == float(10**25)
    await kernel.call(amy, "block.increment", {**votes, "by": -(10**25)})
    assert await value(kernel, amy, report, "task", "votes") == 0.3
    error = await refused(kernel, amy, "block.increment", {**votes, "field": "effort"})
    assert error.code is ErrorCode.SCHEMA_VIOLATION


async def test_increments_at_once_all_count(kernel: Kernel, amy: Actor, report: str) -> None:
    votes = {"block_id": report, "section": "task", "field": "votes"}
    await asyncio.gather(*(kernel.call(amy, "block.increment", votes) for _ in range(20)))
    assert await value(kernel, amy, report, "task", "votes") == 22


async def test_counter_keeps_the_large_part_of_a_sum_whose_small_part_has_many_digits(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make({"title": "votes"}, schema=TASK)
    for by in (10**299, 0.1, 1e-308, -0.1, -1e-308):
        await kernel.call(amy, "block.increment", {"block_id": block, "field": "votes", "by": by})

    assert (await value(kernel, amy, block))["votes"] == 10**299 + 2


async def test_increments_at_the_same_time_each_tell_what_they_have_made_of_the_counter(
    call: Caller, make: Make
) -> None:
    block = await make({"title": "votes"}, schema=TASK)
    count = {"block_id": block, "field": "votes"}
    done = await asyncio.gather(*(call("block.increment", **count) for _ in range(4)))

    assert [one["value"] for one in done] == [3, 4, 5, 6]
