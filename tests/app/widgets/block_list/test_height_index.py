"""Heights against the plainest possible list."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon.widgets.prefix_sums import PrefixSums

operations = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "insert", "set", "remove"]),
        st.integers(0, 10_000),
        st.integers(0, 30),
    ),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(operations=operations, start=st.lists(st.integers(0, 20), max_size=40))
def test_height_index_agrees_with_list(
    operations: list[tuple[str, int, int]], start: list[int]
) -> None:
    cells = [(f"s{at}", height) for at, height in enumerate(start)]
    heights = HeightIndex(cells)
    for number, (what, where, height) in enumerate(operations):
        at = where % (len(cells) + 1)
        if what == "insert":
            after = cells[at - 1][0] if at else None
            heights.insert(f"k{number}", height, after=after)
            cells.insert(at, (f"k{number}", height))
        elif cells:
            key, _ = cells[at - 1]
            at = cells.index(cells[at - 1])
            if what == "set":
                heights.set(key, height)
                cells[at] = (key, height)
            else:
                heights.remove(key)
                del cells[at]
    keys = [key for key, _ in cells]
    assert list(heights) == keys
    assert heights.total == sum(height for _, height in cells)
    assert (heights.first(), heights.last()) == ((keys[0], keys[-1]) if keys else (None, None))
    for at, (key, height) in enumerate(cells):
        assert (heights.index(key), heights[key]) == (at, height)
        assert heights.prefix(key) == sum(height for _, height in cells[:at])
        assert heights.beside(key, 1) == (keys[at + 1] if at + 1 < len(keys) else None)
        assert heights.beside(key, -1) == (keys[at - 1] if at else None)
    for row in range(-2, heights.total + 3):
        found = heights.find(row)
        assert (found is None) == (not keys)
        if found is not None:
            key, inside = found
            assert heights.prefix(key) + inside == row
            assert inside < heights[key] or key == keys[-1]


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
