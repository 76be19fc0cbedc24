"""Decision whether a model may hide a block."""

from __future__ import annotations

from antiphon_kernel.layout import arrange, cache_points, visible, why_not_hidden
from tests.kernel.layout.test_cache_points import SIX_ROUNDS
from tests.kernel.layout.written import written

BLOCKS = written(SIX_ROUNDS)
ITEMS = visible(arrange(BLOCKS)).items
POINTS = cache_points(ITEMS)


def test_why_not_hidden_of_a_block_behind_the_pre_tail_point_is_nothing() -> None:
    assert POINTS.pre_tail == 5
    assert why_not_hidden(ITEMS, POINTS, ITEMS[6].block.id) is None


def test_why_not_hidden_of_a_block_up_to_the_pre_tail_point_says_why() -> None:
    for index in (1, 4, 5):
        why = why_not_hidden(ITEMS, POINTS, ITEMS[index].block.id)
        assert why is not None
        assert f"{ITEMS[index].path}" in why and f"{ITEMS[5].path}" in why


def test_why_not_hidden_of_a_block_that_is_not_read_says_so() -> None:
    assert "do not read" in (why_not_hidden(ITEMS, POINTS, "somewhere else") or "")


def test_why_not_hidden_without_a_pre_tail_point_is_nothing() -> None:
    items = visible(arrange(written("U C1 R1"))).items
    assert why_not_hidden(items, cache_points(items), items[1].block.id) is None
