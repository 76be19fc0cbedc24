from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.records import TextSplice
from tests.kernel.splicing import apply_splices

Stick = Literal["left", "right"]


@st.composite
def moves(draw: st.DrawFn) -> tuple[int, int, TextSplice]:
    """A text's length, a cursor in it and a splice of it."""
    length = draw(st.integers(0, 8))
    cursor = draw(st.integers(0, length))
    offset = draw(st.integers(0, length))
    deleted = draw(st.integers(0, length - offset))
    return length, cursor, TextSplice(offset, deleted, "x" * draw(st.integers(0, 3)))


@given(moves(), st.sampled_from(("left", "right")))
def test_cursor_stays_between_the_marked_characters_around_it(
    move: tuple[int, int, TextSplice], stick: Stick
) -> None:
    length, cursor, splice = move
    # Characters of the old text are marked by their place; new ones are "x".
    marks = "".join(chr(0x4E00 + place) for place in range(length))
    after = apply_splices(marks, [splice])
    place = shift_offset(cursor, splice, stick=stick)
    before = [mark for mark in marks[:cursor] if mark in after]
    behind = [mark for mark in marks[cursor:] if mark in after]
    assert [mark for mark in after[:place] if mark != "x"] == before
    assert [mark for mark in after[place:] if mark != "x"] == behind


@pytest.mark.parametrize(
    ("cursor", "splice", "stick", "place"),
    [
        (3, TextSplice(3, 0, "new"), "left", 3),
        (3, TextSplice(3, 0, "new"), "right", 6),
        (3, TextSplice(2, 2, "new"), "left", 2),
        (3, TextSplice(2, 2, "new"), "right", 5),
        (2, TextSplice(2, 2, "new"), "right", 2),
        (4, TextSplice(2, 2, "new"), "left", 5),
        (4, TextSplice(2, 2, ""), "right", 2),
    ],
)
def test_sticking_decides_only_where_the_characters_do_not(
    cursor: int, splice: TextSplice, stick: Stick, place: int
) -> None:
    assert shift_offset(cursor, splice, stick=stick) == place


@given(moves())
def test_cursors_never_change_places(move: tuple[int, int, TextSplice]) -> None:
    length, _, splice = move
    for stick in ("left", "right"):
        places = [shift_offset(cursor, splice, stick=stick) for cursor in range(length + 1)]
        assert places == sorted(places)
