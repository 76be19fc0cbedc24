"""The documents of the text area: exact text, cheap conversions, incremental wrapping."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Offset

from antiphon.widgets.editor.cell_document import (
    CellDocument,
    CellWrappedDocument,
    WrappedNavigator,
)
from antiphon_kernel.types.records import TextSplice
from tests.app.widgets.editor.texts import (
    applied,
    edits,
    fractions,
    rows_of,
    splice_of,
    texts,
)


@given(text=texts, changes=st.lists(edits, max_size=8))
def test_text_is_what_a_plain_string_would_be(
    text: str, changes: list[tuple[float, float, str]]
) -> None:
    document = CellDocument(text)
    for where, length, inserted in changes:
        splice = splice_of(text, where, length, inserted)
        done = document.splice(splice)
        text = applied(text, splice)
        assert document.text == text
        assert document.lines == text.split("\n")
        assert document.length == len(text)
        assert document.offset_of(done.start) == splice.offset
        assert document.offset_of(done.new_end) == splice.offset + len(splice.inserted)
        assert document.get_text_range(done.start, done.new_end) == splice.inserted
    for offset in range(len(text) + 1):
        row, column = document.location_of(offset)
        assert document.offset_of((row, column)) == offset
        assert row == text.count("\n", 0, offset)
        assert 0 <= column <= len(document[row])


def test_splice_outside_the_text_changes_nothing() -> None:
    document = CellDocument("abc")
    with pytest.raises(ValueError, match="outside a text of 3 code points"):
        document.splice(TextSplice(2, 2, "x"))
    assert document.text == "abc"


widths = st.integers(2, 24)


@given(text=texts, width=widths)
def test_rows_show_every_character_once_and_fit(text: str, width: int) -> None:
    wrap = CellWrappedDocument(CellDocument(text), width)
    seen = 0
    for line in range(wrap.document.line_count):
        column = 0
        for section, shown in enumerate(rows_of(wrap)[line]):
            start, end = wrap.section_span(line, section)
            assert start == column
            column = end
            assert cell_len(shown.rstrip(" ")) <= width
            assert "\x1b" not in shown and "\n" not in shown and "\u202e" not in shown
            assert wrap.section_at(seen) == (line, section)
            seen += 1
        assert column == len(wrap.document[line])
    assert seen == wrap.height


@given(text=texts, width=widths)
def test_place_on_screen_is_found_again(text: str, width: int) -> None:
    document = CellDocument(text)
    wrap = CellWrappedDocument(document, width)
    for offset in range(len(text) + 1):
        place = document.location_of(offset)
        column, row = wrap.location_to_offset(place)
        assert wrap.row_of(place) == row
        found = wrap.offset_to_location(Offset(column, row))
        assert wrap.location_to_offset(found) == Offset(column, row)
        assert document.offset_of(found) <= offset


@given(text=texts, width=widths)
def test_cursor_walks_through_the_text_in_both_directions(text: str, width: int) -> None:
    document = CellDocument(text)
    wrap = CellWrappedDocument(document, width)
    navigator = WrappedNavigator(wrap)
    place, stops = document.start, [document.start]
    while place != document.end:
        following = navigator.get_location_right(place)
        assert following > place
        place = following
        stops.append(place)
    back = [place]
    while place != document.start:
        place = navigator.get_location_left(place)
        back.append(place)
    assert back[::-1] == stops


@settings(deadline=None)
@given(piece=texts, times=st.integers(5, 30), width=widths, change=edits)
def test_edit_in_a_long_line_wraps_what_it_touches(
    piece: str, times: int, width: int, change: tuple[float, float, str]
) -> None:
    text = piece.replace("\n", " ") * times
    where, length, inserted = change
    document = CellDocument(text)
    wrap = CellWrappedDocument(document, width)
    splice = splice_of(text, where, length**3, inserted.replace("\n", " "))
    wrap.wrap_range(*document.splice(splice))
    assert rows_of(wrap) == rows_of(CellWrappedDocument(CellDocument(applied(text, splice)), width))


def test_picture_of_many_code_points_is_one_step() -> None:
    navigator = WrappedNavigator(CellWrappedDocument(CellDocument("a👩‍👩‍👧b"), 20))
    assert navigator.get_location_right((0, 1)) == (0, 6)
    assert navigator.get_location_left((0, 6)) == (0, 1)


folds = st.tuples(fractions, fractions)


@given(text=texts, width=widths, changes=st.lists(edits | folds | fractions, max_size=8))
def test_folding_changes_no_text_and_loses_no_place(
    text: str, width: int, changes: list[tuple[float, float, str] | tuple[float, float] | float]
) -> None:
    document = CellDocument(text)
    wrap = CellWrappedDocument(document, width)
    for change in changes:
        match change:
            case (where, length, inserted):
                splice = splice_of(text, where, length, inserted)
                wrap.wrap_range(*document.splice(splice))
                text = applied(text, splice)
            case (where, length):
                splice = splice_of(text, where, length, "")
                start, end = splice.offset, splice.offset + splice.deleted
                if document.location_of(start) < document.location_of(end):
                    wrap.wrap_range(*document.fold(start, end, "[a label]"))
            case float(where) if document.folds:
                at = round(where * (len(document.folds) - 1))
                wrap.wrap_range(*document.unfold(document.folds[at]))
        ranges = document.folds
        assert document.text == text
        assert document.get_text_range(document.start, document.end) == text
        afresh = CellWrappedDocument(document, width)
        assert (wrap.height, rows_of(wrap)) == (afresh.height, rows_of(afresh))
        assert sum("[a label]" in row for line in rows_of(wrap) for row in line) == len(ranges)
        for offset in range(len(text) + 1):
            inside = (one.offset for one in ranges if one.offset < offset < one.end)
            place = document.location_of(offset)
            assert document.offset_of(place) == next(inside, offset)


def test_cursor_passes_a_folded_range_in_one_step() -> None:
    document = CellDocument("one two\nthree four")
    document.fold(4, 13, "[pasted]")
    navigator = WrappedNavigator(CellWrappedDocument(document, 20))
    assert document.lines[0][:4] == "one " and len(document.lines) == 1
    behind = navigator.get_location_right((0, 4))
    assert document.offset_of(behind) == 13
    assert navigator.get_location_left(behind) == (0, 4)


def test_label_is_on_one_row_if_it_fits() -> None:
    document = CellDocument("some text before it")
    document.fold(10, 16, "[pasted 2 lines]")
    wrap = CellWrappedDocument(document, 20)
    assert [row.rstrip() for row in rows_of(wrap)[0]] == ["some text", "[pasted 2 lines] it"]
