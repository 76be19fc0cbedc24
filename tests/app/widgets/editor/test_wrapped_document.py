"""Rows of the editor: incremental wrapping, places of characters."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Offset

from antiphon.widgets.editor.cell_document import CellDocument
from antiphon.widgets.editor.wrapped_document import CellWrappedDocument, WrappedNavigator
from tests.app.widgets.editor.texts import applied, edits, splice_of, texts

widths = st.integers(2, 24)


@given(text=texts, width=widths, changes=st.lists(edits, max_size=6))
def test_wrapping_what_changed_is_wrapping_everything(
    text: str, width: int, changes: list[tuple[float, float, str]]
) -> None:
    document = CellDocument(text)
    wrap = CellWrappedDocument(document, width)
    for where, length, inserted in changes:
        splice = splice_of(text, where, length, inserted)
        wrap.wrap_range(*document.splice(splice))
        text = applied(text, splice)
        afresh = CellWrappedDocument(CellDocument(text), width)
        assert wrap.height == afresh.height
        assert wrap.lines == afresh.lines


@given(text=texts, width=widths)
def test_rows_show_every_character_once_and_fit(text: str, width: int) -> None:
    wrap = CellWrappedDocument(CellDocument(text), width)
    seen = 0
    for line in range(wrap.document.line_count):
        column = 0
        for section, shown in enumerate(wrap.get_sections(line)):
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
    assert wrap.lines == CellWrappedDocument(CellDocument(applied(text, splice)), width).lines


def test_picture_of_many_code_points_is_one_step() -> None:
    navigator = WrappedNavigator(CellWrappedDocument(CellDocument("a👩‍👩‍👧b"), 20))
    assert navigator.get_location_right((0, 1)) == (0, 6)
    assert navigator.get_location_left((0, 6)) == (0, 1)
