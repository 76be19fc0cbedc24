"""Cache points, with every worked case of the design, and which blocks a model may hide."""

from __future__ import annotations

import pytest

from antiphon_kernel.layout import LayoutItem, arrange, cache_points, visible, why_not_hidden
from antiphon_kernel.layout.reading import CachePoints
from antiphon_kernel.types.enums import Status
from tests.kernel.layout.written import Writing, names, written

SIX_ROUNDS = "H U " + " ".join(f"C{number} R{number}" for number in range(1, 7))
INTERLEAVED = "H U C1 C2 R1 R2 C3 R3 C4 R4 C5 R5"


def in_written_order(words: str) -> list[LayoutItem]:
    """Return items in the order of the words, also where a layout would put results elsewhere."""
    blocks = written(words)
    items = arrange(blocks).items
    headers = [item for item in items if not item.is_block]
    by_block = {item.block.id: item for item in items if item.is_block}
    ordered: list[LayoutItem] = []
    for block in blocks:
        ordered += [header for header in headers if header.block == block]
        ordered.append(by_block[block.id])
    return ordered


@pytest.mark.parametrize(
    ("words", "points"),
    [
        ("", CachePoints()),
        ("H U", CachePoints(None, 0, 1)),
        ("H U C1 R1", CachePoints(None, None, 3)),
        ("H U C1 R1 C2 R2", CachePoints(None, 3, 5)),
        (SIX_ROUNDS, CachePoints(None, 5, 13)),
        ("H U A · H U C1 R1", CachePoints(2, 2, 6)),
        ("H U A · " * 5, CachePoints(11, 2, 14)),
        (INTERLEAVED, CachePoints(None, 4, 11)),
        (f"{INTERLEAVED} C6 R6", CachePoints(None, 5, 13)),
    ],
    ids=[
        "empty",
        "H U",
        "H U C1 R1",
        "H U C1 R1 C2 R2",
        "H U + 6 rounds",
        "H U A · H U C1 R1",
        "five turns of H U A",
        "interleaved calls",
        "interleaved calls and another one",
    ],
)
def test_cache_points_exact_of_worked_case(words: str, points: CachePoints) -> None:
    assert cache_points(in_written_order(words), exact=True) == points


def test_cache_point_inside_interleaved_calls_moves_before_both() -> None:
    assert cache_points(in_written_order(INTERLEAVED)) == CachePoints(None, 1, 11)


def test_cache_points_of_equal_places_are_one_index() -> None:
    items = in_written_order("H U A · H U C1 R1")
    assert cache_points(items, exact=True).indices == (2, 6)


def test_cache_point_at_the_tail_covers_trailing_messages() -> None:
    items = arrange(written("U C1 R1 U U")).items
    assert names(arrange(written("U C1 R1 U U"))) == "H U C R H U H U"
    assert cache_points(items).tail == len(items) - 1


def test_cache_point_at_the_tail_stands_before_a_call_that_is_running() -> None:
    writing = Writing()
    prompt = writing.user()
    call = writing.call(prompt, status=Status.RUNNING)
    assert cache_points(arrange(writing.blocks).items).tail == 1
    writing.result(call)
    assert cache_points(arrange(writing.blocks).items).tail == 1
    writing.change(call, status=Status.DONE)
    assert cache_points(arrange(writing.blocks).items).tail == 3


def test_cache_points_of_a_live_turn_before_others_begin_there() -> None:
    items = arrange(written("U A · U A · U A")).items
    live = items[3].turn
    assert cache_points(items, live=live).previous_turn == 2
    assert cache_points(items).previous_turn == 5


def test_cache_points_behind_a_summary_keep_it() -> None:
    items = visible(arrange(written("U A S U A"))).items
    assert cache_points(items).previous_turn == 0


def test_cache_points_of_a_filtered_layout_are_of_items_that_are_left() -> None:
    blocks = written(SIX_ROUNDS)
    hidden = [
        block._replace(excluded=block.is_call and number > 8) for number, block in enumerate(blocks)
    ]
    items = visible(arrange(hidden)).items
    assert max(cache_points(items).indices) == len(items) - 1


# Whether a model may hide a block

ITEMS = visible(arrange(written(SIX_ROUNDS))).items


def test_why_not_hidden_of_a_block_behind_the_pre_tail_point_is_nothing() -> None:
    assert cache_points(ITEMS).pre_tail == 5
    assert why_not_hidden(ITEMS, ITEMS[6].block.id) is None


def test_why_not_hidden_of_a_block_up_to_the_pre_tail_point_says_why() -> None:
    for index in (1, 4, 5):
        why = why_not_hidden(ITEMS, ITEMS[index].block.id)
        assert why is not None
        assert f"{ITEMS[index].path}" in why and f"{ITEMS[5].path}" in why


def test_why_not_hidden_of_a_block_that_is_not_read_says_so() -> None:
    assert "do not read" in (why_not_hidden(ITEMS, "somewhere else") or "")


def test_why_not_hidden_without_a_pre_tail_point_is_nothing() -> None:
    items = visible(arrange(written("U C1 R1"))).items
    assert why_not_hidden(items, items[1].block.id) is None
