"""A layout costs in proportion to its blocks, whatever their shape."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from antiphon_kernel.layout import LayoutBlock, arrange, first_break, read_layout
from tests.kernel.growth.work import calls_of
from tests.kernel.layout.written import OPUS, Writing

SIZES = (200, 800)


def many_turns(size: int) -> list[LayoutBlock]:
    writing = Writing()
    for _ in range(size // 4):
        prompt = writing.user()
        writing.result(writing.call(prompt))
        writing.say(prompt)
    return writing.blocks


def one_turn(size: int) -> list[LayoutBlock]:
    writing = Writing()
    prompt = writing.user()
    for _ in range(size // 2):
        writing.result(writing.call(prompt))
    return writing.blocks


def results_of_one_call(size: int) -> list[LayoutBlock]:
    writing = Writing()
    call = writing.call(writing.user())
    for _ in range(size):
        writing.result(call)
    return writing.blocks


def chain_of_answers(size: int) -> list[LayoutBlock]:
    """Each block answers the next one, so that the way up is the longest from the first."""
    writing = Writing()
    block = writing.user()
    for _ in range(size):
        block = writing.say(block)
    return writing.blocks[::-1]


def open_calls(size: int) -> list[LayoutBlock]:
    writing = Writing()
    prompt = writing.user()
    calls = [writing.call(prompt) for _ in range(size // 2)]
    for call in calls[::-1]:
        writing.result(call)
    return writing.blocks


def seconds(blocks: list[LayoutBlock]) -> float:
    """Processor time of all that is made of blocks; the least of several rounds."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        layout = arrange(blocks)
        read_layout(layout, OPUS.id).request()
        first_break(layout, arrange(blocks[:-1], layout))
        spent.append(time.process_time() - began)
    return min(spent)


@pytest.mark.parametrize(
    "shape", [many_turns, one_turn, results_of_one_call, chain_of_answers, open_calls]
)
def test_layout_costs_in_proportion_to_the_blocks(
    shape: Callable[[int], list[LayoutBlock]],
) -> None:
    once, four_times = (seconds(shape(size)) for size in SIZES)
    # In proportion it would be 4, with the square of the blocks 16.
    assert four_times < 9 * once, (once, four_times)


async def work_of_one_more_turn(size: int) -> tuple[int, int]:
    """Return how many turns are made anew for the next request, and how many functions called."""
    writing = Writing.of(many_turns(size))
    layout = arrange(writing.blocks)
    reading = read_layout(layout, OPUS.id)
    made = calls = 0

    async def read() -> None:
        nonlocal layout, reading
        layout = arrange(writing.blocks, layout)
        reading = read_layout(layout, OPUS.id, before=reading)
        reading.request()
        reading.message_tokens()

    # What the first turn takes that is written behind the others is made of each of them once.
    for _ in range(3):
        prompt = writing.user()
        writing.result(writing.call(prompt))
        writing.say(prompt)
        before = set(map(id, reading.parts))
        calls = await calls_of(read())
        made = sum(id(part) not in before for part in reading.parts)
    return made, calls


async def test_request_after_one_more_turn_takes_the_same_work_in_a_longer_context() -> None:
    few, many = [await work_of_one_more_turn(size) for size in (200, 800)]
    assert few[0] == many[0] == 1
    assert many[1] < 1.1 * few[1]
