"""Differences of two sequences: exact while they are few, and always right."""

from __future__ import annotations

import random
import time
from collections.abc import Hashable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.sequence_diff import ChangedRange, changed_ranges
from antiphon_kernel.text.splice_diff import plan_difference
from tests.kernel.splicing import apply_splices

short = st.lists(st.integers(0, 3), max_size=25)


def applied(
    old: Sequence[Hashable], new: Sequence[Hashable], ranges: list[ChangedRange]
) -> list[Hashable]:
    result: list[Hashable] = []
    at = 0
    for one in ranges:
        result += old[at : one.start]
        assert len(result) == one.new_start
        result += new[one.new_start : one.new_end]
        at = one.end
    return [*result, *old[at:]]


def longest_common(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, this in enumerate(old):
        for j, that in enumerate(new):
            more = best[i][j] + 1
            best[i + 1][j + 1] = more if this == that else max(best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


@given(short, short)
def test_sequence_diff_keeps_longest_common_subsequence(old: list[int], new: list[int]) -> None:
    ranges = changed_ranges(old, new)
    assert applied(old, new, ranges) == new
    assert len(old) - sum(one.end - one.start for one in ranges) == longest_common(old, new)


@given(st.integers(0, 2**32))
def test_sequence_diff_of_long_sequences_is_correct(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = rng.choice([2, 5, 1000])
    old = [rng.randrange(alphabet) for _ in range(rng.randrange(1_500))]
    new = list(old)
    for _ in range(rng.randrange(300)):
        at = rng.randint(0, len(new))
        new[at : at + rng.randrange(3)] = [rng.randrange(alphabet)] * rng.randrange(3)
    ranges = changed_ranges(old, new)
    assert applied(old, new, ranges) == new
    assert all(one.start < one.end or one.new_start < one.new_end for one in ranges)


def test_sequences_with_nothing_in_common_do_not_take_long() -> None:
    rng = random.Random(1)
    old, new = ([rng.randrange(3) for _ in range(60_000)] for _ in range(2))
    start = time.process_time()
    assert applied(old, new, changed_ranges(old, new)) == new
    assert time.process_time() - start < 3


def test_far_changes_among_equal_elements_are_found_exactly() -> None:
    old = [0] * 100_000
    new = [0] * 10 + [1] + [0] * 99_980 + [2] + [0] * 9
    ranges = changed_ranges(old, new)
    assert applied(old, new, ranges) == new
    assert sum(one.end - one.start for one in ranges) <= 2


texts = st.text(st.sampled_from("ab\n\r😀é漢\u200d "), max_size=60)


@given(texts, texts)
def test_splices_make_the_other_text(before: str, after: str) -> None:
    assert apply_splices(before, plan_difference(before, after)) == after


def test_changed_word_is_all_that_changes() -> None:
    before = "".join(f"line {number}\n" for number in range(2_000))
    after = before.replace("line 700\n", "line seven hundred\n")
    [splice] = plan_difference(before, after)
    assert splice.offset == before.index("700") and splice.deleted <= 3
    assert len(splice.inserted) <= len("seven hundred")


def test_plan_difference_of_distant_changes_is_two_splices() -> None:
    before = "one\n" + "same\n" * 500 + "two\n"
    after = "ONE\n" + "same\n" * 500 + "TWO\n"
    first, last = plan_difference(before, after)
    assert (first.inserted, last.inserted) == ("ONE", "TWO")
