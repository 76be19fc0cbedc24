"""Prefix sums against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.widgets.prefix_sums import PrefixSums

values = st.lists(st.integers(1, 9), max_size=12)


@given(
    start=values,
    edits=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12), values), max_size=30),
)
def test_prefix_sums_agree_with_list(
    start: list[int], edits: list[tuple[int, int, list[int]]]
) -> None:
    oracle = list(start)
    sums = PrefixSums(start, chunk=4)
    for where, length, new in edits:
        low = min(where, len(oracle))
        high = min(low + length, len(oracle))
        oracle[low:high] = new
        sums.splice(low, high, new)
        assert sums.total == sum(oracle)
        assert [sums[index] for index in range(len(oracle))] == oracle
        assert [sums.before(index) for index in range(len(oracle) + 1)] == [
            sum(oracle[:index]) for index in range(len(oracle) + 1)
        ]
        for position in range(sums.total + 2):
            index, inside = sums.find(position)
            assert sum(oracle[:index]) + inside == position
            assert not oracle or inside < oracle[index] or index == len(oracle) - 1
