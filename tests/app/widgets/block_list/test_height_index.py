"""Heights against the plainest possible list."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.widgets.block_list.height_index import HeightIndex


class ListOfHeights:
    """The oracle: a list of pairs, summed again for every question."""

    def __init__(self) -> None:
        self.cells: list[tuple[str, int]] = []

    def index(self, key: str) -> int:
        return [name for name, _ in self.cells].index(key)

    def prefix(self, key: str) -> int:
        return sum(height for _, height in self.cells[: self.index(key)])

    def find(self, row: int) -> tuple[str, int] | None:
        if not self.cells:
            return None
        if row < 0:
            return self.cells[0][0], row
        for key, height in self.cells:
            if row < height:
                return key, row
            row -= height
        return self.cells[-1][0], row + self.cells[-1][1]


operations = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "insert", "set", "remove"]),
        st.integers(0, 10_000),
        st.integers(0, 30),
    ),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(operations=operations, start=st.lists(st.integers(0, 20), max_size=40), probe=st.integers())
def test_height_index_agrees_with_list(
    operations: list[tuple[str, int, int]], start: list[int], probe: int
) -> None:
    oracle = ListOfHeights()
    oracle.cells = [(f"s{at}", height) for at, height in enumerate(start)]
    heights = HeightIndex(oracle.cells, chunk=4)
    for number, (what, where, height) in enumerate(operations):
        at = where % (len(oracle.cells) + 1)
        if what == "insert":
            after = oracle.cells[at - 1][0] if at else None
            heights.insert(f"k{number}", height, after=after)
            oracle.cells.insert(at, (f"k{number}", height))
        elif oracle.cells:
            key, old = oracle.cells[at - 1]
            at = oracle.index(key)
            if what == "set":
                assert heights.set(key, height) == height - old
                oracle.cells[at] = (key, height)
            else:
                heights.remove(key)
                del oracle.cells[at]
    keys = [key for key, _ in oracle.cells]
    assert list(heights) == keys
    assert len(heights) == len(keys)
    assert heights.total == sum(height for _, height in oracle.cells)
    for row in (*range(-2, heights.total + 3), probe % 1000):
        assert heights.find(row) == oracle.find(row)
    for at, key in enumerate(keys):
        assert heights.index(key) == at
        assert heights[key] == oracle.cells[at][1]
        assert heights.prefix(key) == oracle.prefix(key)
        assert heights.next(key) == (keys[at + 1] if at + 1 < len(keys) else None)
        assert heights.previous(key) == (keys[at - 1] if at else None)
    assert heights.first() == (keys[0] if keys else None)
    assert heights.last() == (keys[-1] if keys else None)
