"""Coalescing: texts in a row become one text, or pieces of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.messages import JOIN, coalesce
from tests.kernel.messages.generated import EXAMPLES

PARTS = st.lists(st.sampled_from(["a", "b", " ", 1, 2]))


@pytest.mark.parametrize(
    ("parts", "merged"),
    [
        (["A", "B"], ["A B"]),
        (["A"], ["A"]),
        (["A", "B", 1, "C", 2, 3, "D", "E"], ["A B", 1, "C", 2, 3, "D E"]),
        ([], []),
    ],
)
def test_coalesce_texts_in_a_row_returns_one(
    parts: list[str | int], merged: list[str | int]
) -> None:
    assert coalesce(parts) == merged


def test_coalesce_in_pieces_returns_the_join_at_the_beginning_of_each_later_text() -> None:
    parts = ["A", "B", 1, "C", "D"]
    assert coalesce(parts, "\n\n", in_pieces=True) == ["A", "\n\nB", 1, "C", "\n\nD"]


@EXAMPLES
@given(PARTS)
def test_coalesce_twice_is_once_and_leaves_its_input(parts: list[str | int]) -> None:
    before = list(parts)
    once = coalesce(parts)
    assert coalesce(once) == once and parts == before


@EXAMPLES
@given(PARTS, st.lists(st.sampled_from("ab"), min_size=1))
def test_coalesce_in_pieces_reads_as_one_and_grows_at_its_end(
    parts: list[str | int], more: list[str]
) -> None:
    pieces = coalesce(parts, in_pieces=True)
    assert coalesce(pieces, "") == coalesce(parts, JOIN)
    assert coalesce([*parts, *more], in_pieces=True)[: len(parts)] == pieces
