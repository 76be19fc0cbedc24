"""Reading again: what is taken from an earlier reading changes nothing but the work."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import chain

import pytest

from antiphon_kernel.layout import (
    EVERYTHING,
    ContributionFilter,
    ItemType,
    LayoutBlock,
    LayoutReading,
    arrange,
    cache_points,
    read_layout,
    visible,
)
from antiphon_kernel.layout.reading import model_view
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.messages import check_correlation, estimate_message, estimate_text
from tests.kernel.layout.random_writing import MODELS, RandomWriting
from tests.kernel.layout.written import BEN, LYRA, OPUS, Writing, marked, written

CASES = int(os.environ.get("ANTIPHON_CASES", "120"))
TOGETHER = 20
"""Cases of one test."""

STEPS = 20

FILTERS = (
    EVERYTHING,
    ContributionFilter(frozenset((ItemType.THINKING, ItemType.TOOL_RESULT))),
    ContributionFilter(include_only=frozenset((ItemType.ASSISTANT_COMPLETION,))),
)


def assert_as_from_scratch(
    reading: LayoutReading,
    blocks: Sequence[LayoutBlock],
    model: str | None,
    admitted: ContributionFilter,
    live: str | None,
    *,
    is_plain: bool = False,
) -> None:
    layout = arrange(blocks)
    items = visible(layout, admitted, live=live).items
    reader = LayoutReader.of(layout, model, is_plain=is_plain)
    view, points = model_view(items, reader), cache_points(items, live=live)
    check_correlation(view.messages)
    assert reading.reader == reader
    assert list(reading.items) == items
    assert reading.points == points
    assert reading.request().messages == view.messages
    assert reading.request().marks == marked(view, points.indices)
    assert reading.message_tokens() == list(map(estimate_message, view.messages))
    texts = [item_text(item, reader) for item in items]
    tokens = chain.from_iterable(part.text_tokens for part in reading.parts)
    assert list(tokens) == list(map(estimate_text, texts))
    assert sum(part.code_points for part in reading.parts) == sum(map(len, texts))


@pytest.mark.parametrize("first", range(0, max(TOGETHER, CASES // 4), TOGETHER))
def test_reading_after_each_step_is_the_same_with_what_was_read_before(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        rng = random.Random(seed)
        writing = RandomWriting(rng)
        layout = arrange([])
        readers: list[tuple[str | None, ContributionFilter, bool]] = [
            *((model.id, one, False) for model in MODELS for one in FILTERS),
            *((model.id, EVERYTHING, True) for model in MODELS),
            (None, EVERYTHING, False),
        ]
        before: dict[object, LayoutReading] = {}
        earlier: list[list[LayoutBlock]] = []
        for _ in range(STEPS):
            earlier.append(list(writing.blocks))
            for _ in range(rng.randint(1, 3)):
                writing.step()
            if rng.random() < 0.1:
                writing.blocks[:] = rng.choice(earlier)
            layout = arrange(writing.blocks, layout)
            live = rng.choice([None, *(turn.id for turn in layout.turns)])
            for key in rng.sample(readers, 2):
                model, admitted, is_plain = key
                reading = read_layout(
                    layout, model, admitted, live=live, is_plain=is_plain, before=before.get(key)
                )
                assert_as_from_scratch(
                    reading, writing.blocks, model, admitted, live, is_plain=is_plain
                )
                before[key] = reading


def kept(before: LayoutReading, after: LayoutReading) -> list[bool]:
    """Return for each part that is read whether it is the one that was read before."""
    return [any(part is one for one in before.parts) for part in after.parts]


def test_reading_again_makes_only_the_turn_anew_that_has_changed() -> None:
    writing = Writing.of(written("U A · U C1 R1 A · U A"))
    layout = arrange(writing.blocks)
    before = read_layout(layout, OPUS.id)
    writing.change(writing.blocks[5], text="Edited")
    layout = arrange(writing.blocks, layout)
    assert kept(before, read_layout(layout, OPUS.id, before=before)) == [True, False, True]


def test_reading_again_after_a_second_person_has_written_names_the_first_one_anew() -> None:
    writing = Writing.of(written("U A · U A"))
    layout = arrange(writing.blocks)
    before = read_layout(layout, OPUS.id)
    writing.user("And me?", BEN)
    layout = arrange(writing.blocks, layout)
    after = read_layout(layout, OPUS.id, before=before)
    assert kept(before, after) == [False, False, False]
    assert_as_from_scratch(after, writing.blocks, OPUS.id, EVERYTHING, None)


def test_reading_of_another_model_or_filter_takes_nothing_from_before() -> None:
    layout = arrange(written("U A · U A"))
    before = read_layout(layout, OPUS.id)
    assert not any(kept(before, read_layout(layout, LYRA.id, before=before)))
    assert not any(kept(before, read_layout(layout, OPUS.id, FILTERS[2], before=before)))


def test_reading_again_behind_a_summary_lets_go_of_what_is_hidden() -> None:
    writing = Writing.of(written("U A · U A · U A"))
    layout = arrange(writing.blocks)
    before = read_layout(layout, OPUS.id)
    writing.summary(writing.blocks[2])
    writing.blocks.insert(4, writing.blocks.pop())
    layout = arrange(writing.blocks, layout)
    after = read_layout(layout, OPUS.id, before=before)
    assert kept(before, after) == [False, True]
    assert_as_from_scratch(after, writing.blocks, OPUS.id, EVERYTHING, None)


def test_reading_of_a_plain_model_joins_what_it_said_in_turns_without_a_question() -> None:
    writing = Writing.of(written("U A · U A · U A"))
    for index in (0, 2, 4):
        writing.change(writing.blocks[index], excluded=True)
    reading = read_layout(arrange(writing.blocks), OPUS.id, is_plain=True)
    assert_as_from_scratch(reading, writing.blocks, OPUS.id, EVERYTHING, None, is_plain=True)
    (message,) = reading.request().messages
    assert len(message.content) == 3
