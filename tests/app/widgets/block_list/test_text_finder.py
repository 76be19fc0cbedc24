from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.widgets.block_list import CellModel, Hit, HitPlace, TextFinder
from antiphon_kernel.types.enums import Status
from tests.app.widgets.block_list.sample import BEN, CONTEXT, Sample
from tests.app.widgets.editor.texts import fractions, splice_of


def block_id(number: int) -> str:
    return f"{CONTEXT}.{BEN}.{number}"


def finder_of(*texts: str) -> tuple[Sample, TextFinder]:
    sample = Sample()
    for text in texts:
        sample.add(text, author=BEN)
    return sample, TextFinder(CellModel(sample.here))


def find(finder: TextFinder, query: str) -> None:
    finder.search(query)
    while finder.step():
        pass


@pytest.mark.parametrize(
    ("query", "count"), [("bread", 3), ("Bread", 1), ("BREAD", 0), ("", 0), ("b.ead", 0)]
)
def test_finder_query_in_lower_case_finds_both_cases(query: str, count: int) -> None:
    _, finder = finder_of("bread and Bread", "rye bread")
    find(finder, query)
    assert finder.count == count


def test_finder_next_and_previous_go_around() -> None:
    _, finder = finder_of("x one x", "none", "x")
    find(finder, "x")
    place, ways = HitPlace(block_id(1), 0), []
    for _ in range(3):
        found = finder.beside(place, 1)
        assert found is not None
        place = found
        ways.append((place, finder.number(place)))
    assert ways == [
        (HitPlace(block_id(1), 6), 2),
        (HitPlace(block_id(3), 0), 3),
        (HitPlace(block_id(1), 0), 1),
    ]
    assert finder.beside(place, -1) == HitPlace(block_id(3), 0)
    assert finder.beside(HitPlace(block_id(3), 0), -1) == HitPlace(block_id(1), 6)
    find(finder, "one x")
    single = HitPlace(block_id(1), 2)
    assert finder.beside(single, 1) == single == finder.beside(single, -1)


def test_finder_drafts_of_others_are_left_out() -> None:
    sample, finder = finder_of("x")
    sample.add("x", author=BEN, status=Status.PENDING)
    find(finder, "x")
    assert [block for block, _ in finder] == [block_id(1)]


def test_finder_begins_with_the_first_cell_it_is_told() -> None:
    _, finder = finder_of(*["x"] * 100)
    finder.search("x", first=block_id(70))
    finder.step(0)
    assert finder.is_searching
    assert next(iter(finder))[0] in (block_id(70), block_id(1))
    assert finder.beside(HitPlace(block_id(70), -1), 1) == HitPlace(block_id(70), 0)


def test_finder_text_is_shifted_until_it_is_searched_again() -> None:
    sample, finder = finder_of("y" * 30 + "x")
    find(finder, "x")
    sample.here.splice(block_id(1), 0, 0, "x..")
    assert finder.of(block_id(1)) == (Hit(33, 34),)
    while finder.step():
        pass
    assert finder.of(block_id(1)) == (Hit(0, 1), Hit(33, 34))


@given(
    st.text("abA", max_size=30),
    st.text("ab", min_size=1, max_size=3),
    st.lists(st.tuples(fractions, fractions, st.text("abA", max_size=5)), max_size=8),
)
def test_finder_hits_while_text_changes_equal_those_of_a_new_search(
    text: str, query: str, edits: list[tuple[float, float, str]]
) -> None:
    sample, finder = finder_of(text)
    find(finder, query)
    for edit in edits:
        splice = splice_of(sample.peer.text(block_id(1)), *edit)
        sample.peer.splice(block_id(1), splice.offset, splice.deleted, splice.inserted)
        while finder.step():
            pass
        now = sample.here.text(block_id(1))
        expected = [Hit(*one.span()) for one in re.finditer(query, now, re.IGNORECASE)]
        assert list(finder.of(block_id(1))) == expected
