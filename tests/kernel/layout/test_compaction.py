"""Plans of compactions: where a stream is cut."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon_kernel.layout import CompactionError, ItemType, LayoutItem, arrange, visible
from antiphon_kernel.layout.compaction import (
    KEEP_SHARE,
    CompactionPlan,
    plan_compaction,
    plan_last_turns,
)
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import Status
from tests.kernel.layout.written import LYRA, Writing, names, random_blocks, written

CASES = int(os.environ.get("ANTIPHON_CASES", "40"))

SERIAL = visible(arrange(written("U C1 R1 C2 R2 A"))).items
"""H U C1 R1 C2 R2 A"""
SERIAL_WEIGHTS = [0, 10, 10, 50, 10, 50, 10]
BEHIND_A_TURN = visible(arrange(written("U A U C1 R1 C2 R2 A"))).items
"""H U A, and the same again"""
SCALE = 1_000
"""Makes weights so large that there is room for a summary everywhere."""


def cut_that_keeps(
    keep: int, items: Sequence[LayoutItem], weights: Sequence[int]
) -> LayoutItem | None:
    """Return the first item behind the cut of a stream that is to keep so much at most."""
    scaled = [weight * SCALE for weight in weights]
    plan = planned(items, scaled, math.ceil(keep * SCALE / KEEP_SHARE))
    return items[plan.cut] if plan.cut < len(items) else None


@pytest.mark.parametrize(
    ("keep", "before"),
    [(keep, 6) for keep in (15, 30, 59, 60)] + [(keep, 4) for keep in (65, 70, 71, 119, 120)],
)
def test_cut_of_the_serial_stream_is_before_a_up_to_60_and_before_c2_from_65_to_120(
    keep: int, before: int
) -> None:
    found = cut_that_keeps(keep, BEHIND_A_TURN, [0, 0, 1_000, *SERIAL_WEIGHTS])
    assert found == BEHIND_A_TURN[3 + before]


def test_plan_of_one_huge_result_ends_within_the_budget_with_u_visible() -> None:
    items = visible(arrange(written("U C1 R1"))).items
    plan = planned(items, [0, 10, 10, 10_000], 2_000)
    assert plan.cut == 4 and plan.covered == (2, 3)
    assert plan.kept + plan.room <= 2_000
    assert plan.kept == 10


def planned(
    items: Sequence[LayoutItem], weights: Sequence[int], budget: int, **more: Any
) -> CompactionPlan:
    plan = plan_compaction(items, weights, budget, **more)
    assert plan is not None
    return plan


def test_plan_keeps_about_seven_tenths_of_the_budget() -> None:
    items = visible(arrange(written("U " + "C R " * 100))).items
    plan = planned(items, [10] * len(items), 1_000)
    behind = sum([10] * len(items[plan.cut :]))
    assert 700 <= behind + 20 <= 740
    assert plan.kept == behind + 20


def test_plan_keeps_the_last_six_turns_whole_if_they_fit() -> None:
    items = visible(arrange(written("U A C1 R1 A " * 8))).items
    weights = [20] * len(items)
    plan = planned(items, weights, 900)
    assert plan.cut == len(items) - 6 * 6
    assert planned(items, weights, 700).cut > plan.cut


def test_plan_counts_what_else_is_in_the_request() -> None:
    items = visible(arrange(written("U A " * 30))).items
    weights = [20] * len(items)
    assert planned(items, weights, 1_000, reserved=300).kept <= 1_000 - 300 - 64
    assert plan_compaction(items, weights, 1_800) is None
    assert plan_compaction(items, weights, 1_800, reserved=1) is not None
    with pytest.raises(CompactionError) as raised:
        plan_compaction(items, weights, 1_000, reserved=950)
    assert raised.value.largest is None and "950 of them" in str(raised.value)


def test_plan_of_a_prompt_larger_than_the_budget_is_an_error_that_names_it() -> None:
    items = visible(arrange(written("U A U C1 R1"))).items
    with pytest.raises(CompactionError) as raised:
        plan_compaction(items, [0, 10, 10, 0, 5_000, 10, 10], 2_000)
    assert raised.value.largest == str(items[4].path)
    assert raised.value.largest in str(raised.value) and "5000" in str(raised.value)


def test_plan_of_a_call_that_is_open_never_cuts_behind_it() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt)
    call = writing.call(prompt, status=Status.RUNNING)
    writing.result(call, "x" * 100, status=Status.RUNNING)
    writing.result(writing.call(prompt, LYRA))
    items = visible(arrange(writing.blocks)).items
    assert names(visible(arrange(writing.blocks))) == "H U N C R C R"
    with pytest.raises(CompactionError) as raised:
        plan_compaction(items, [0, 10, 10, 10, 10_000, 10, 10], 2_000)
    assert raised.value.largest == str(items[4].path)
    assert "still being written" in str(raised.value)


def test_plan_of_a_call_that_is_open_cuts_before_it() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.result(writing.call(prompt))
    writing.call(prompt, status=Status.RUNNING)
    items = visible(arrange(writing.blocks)).items
    assert planned(items, [0, 10, 10, 2_000, 10], 1_000).cut == 4


def test_plan_never_parts_a_call_from_the_notes_that_lead_to_it() -> None:
    items = visible(arrange(written("U A C1 R1 A C2 R2"))).items
    weights = [0, 0, *[10] * 6]
    assert cut_that_keeps(20, items, weights) is None
    assert cut_that_keeps(30, items, weights) == items[-3]


def test_plan_of_the_last_turns_cuts_before_them_or_is_nothing() -> None:
    items = visible(arrange(written("U A " * 8))).items
    plan = plan_last_turns(items, [100] * len(items), 6)
    assert plan is not None and plan.cut == 6
    assert plan_last_turns(items, [100] * len(items), 8) is None
    assert plan_last_turns(items, [1] * len(items), 6) is None


def test_plan_of_the_last_turns_keeps_those_that_are_still_written() -> None:
    writing = Writing.of(written("U A U A U A U A"))
    writing.change(writing.blocks[5], status=Status.RUNNING)
    items = visible(arrange(writing.blocks)).items
    plan = plan_last_turns(items, [100] * len(items), 1)
    assert plan is not None and plan.cut == 6


def test_plan_behind_a_turn_that_is_played_keeps_the_messages_that_wait() -> None:
    items = visible(arrange(written("U C1 R1 C2 R2 U U"))).items
    weights = [10] * len(items)
    weights[3] = weights[5] = 1_000
    plan = planned(items, weights, 400, live=items[0].turn)
    assert items[plan.cut].type is ItemType.TURN_HEADER and plan.cut == 6


# Random streams


def raw_stream(rng: random.Random) -> tuple[list[LayoutItem], list[int]]:
    """Return the items of a random document as they stand there, calls and results interleaved."""
    blocks = random_blocks(rng).blocks
    place = {block.id: index for index, block in enumerate(blocks)}
    items: list[LayoutItem] = []
    for turn in visible(arrange(blocks)).turns:
        header, *others = turn.items
        said = [item for item in others if item.type in OPENING]
        progress = [item for item in others if item.type not in OPENING]
        items += [header, *said, *sorted(progress, key=lambda item: place[item.block.id])]
    return items, [rng.randint(1, 100) for _ in items]


OPENING = (ItemType.USER_PROMPT, ItemType.USER_ATTACHMENT)


def parted(items: Sequence[LayoutItem], cut: int) -> set[str | None]:
    """Return the calls that a cut parts from one of their results."""
    before = {item.round for item in items[:cut] if item.is_exchange}
    return before & {item.round for item in items[cut:] if item.is_exchange}


def test_plan_of_random_streams_fits_or_says_what_is_too_large() -> None:
    fitted, too_large = 0, []
    for seed in range(CASES):
        rng = random.Random(seed)
        items, weights = raw_stream(rng)
        weights = [weight * 50 for weight in weights]
        budget = rng.randint(200, max(300, sum(weights)))
        try:
            plan = plan_compaction(items, weights, budget)
        except CompactionError as error:
            too_large.append((error.tokens + 64, budget))
            continue
        if plan is None:
            assert sum(weights) <= budget
            continue
        fitted += 1
        assert plan.kept + plan.room <= budget, f"seed {seed}"
        assert plan.kept + plan.replaced == sum(weights)
        assert not parted(items, plan.cut), f"seed {seed}"
        behind = [item.block for item in items[plan.cut : plan.cut + 1] if item.is_block]
        assert not any(is_drifted(block.metadata) for block in behind), f"seed {seed}"
        live = [item.turn for item in items][-1]
        kept = {index for index in range(len(items)) if index not in plan.covered}
        for index, item in enumerate(items):
            if item.turn == live and item.type in (*OPENING, ItemType.USER_MESSAGE):
                assert index in kept, f"seed {seed}"
    assert fitted > CASES // 10
    assert all(tokens > budget for tokens, budget in too_large)
