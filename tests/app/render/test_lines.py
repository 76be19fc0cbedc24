"""The map between a text and its lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.lines import RenderedCell
from antiphon.render.text_lines import PlainLook, PlainStream
from antiphon.render.wrap import WrapPiece, compose
from tests.app.render.notation import THEME, picture, plain
from tests.app.widgets.editor.texts import applied, fractions, splice_of

texts = st.text(alphabet="ab \t\n字\u0301\r\x1b", max_size=80)


def drawn(text: str, width: int = 10) -> RenderedCell:
    return PlainStream(PlainLook(width, THEME.text)).update(text)


def test_text_is_found_where_it_is_shown() -> None:
    cell = drawn("one two three\n\nfour\n", 8)
    assert plain(cell) == ["one two", "three", "", "four"]
    assert cell.place_of(0) == (0, 0)
    assert cell.place_of(8) == (1, 0)
    assert cell.place_of(13) == (1, 5), "a newline is behind the last letter"
    assert cell.place_of(14) == (2, 0)
    assert cell.place_of(20) == (3, 4)
    assert cell.offset_at(3, 2) == 17
    assert cell.offset_at(3, 99) == 19
    assert cell.offset_at(99, 0) == 15
    assert (cell.place_of(7), cell.offset_at(0, 7)) == ((0, 7), 7), "a space that broke a line"


def test_inside_a_picture_is_no_place() -> None:
    cell = drawn("a\tb e\u0301", 20)
    assert [cell.place_of(offset) for offset in range(6)] == [
        (0, 0),
        (0, 1),
        (0, 8),
        (0, 9),
        (0, 10),
        (0, 10),
    ]
    assert cell.offset_at(0, 5) == 1


def test_decoration_frames_a_cell_without_taking_part_in_the_map() -> None:
    note = compose([WrapPiece("note", THEME.dim)])
    cell = drawn("one\ntwo").framed([note], [note])
    assert plain(cell) == ["note", "one", "two", "note"]
    assert cell.place_of(4) == (2, 0)
    assert cell.offset_at(0, 0) == 0
    assert cell.offset_at(3, 0) == 7


@given(text=texts, width=st.integers(4, 30))
def test_places_never_go_back_and_lead_to_their_text(text: str, width: int) -> None:
    cell = drawn(text, width)
    places = [cell.place_of(offset) for offset in range(len(text) + 1)]
    assert places == sorted(places)
    for place in places:
        offset = cell.offset_at(*place)
        assert offset is not None
        assert cell.place_of(offset) == place


@given(text=texts, width=st.integers(4, 30))
def test_plain_text_drawn_loses_only_spaces_at_breaks(text: str, width: int) -> None:
    shown: set[int] = set()
    for line in drawn(text, width).lines:
        assert line.strip.cell_length <= width
        for run in line.runs:
            shown.update(range(run.offset, run.offset + run.length))
    hidden = {text[offset] for offset in range(len(text)) if offset not in shown}
    assert hidden <= set(" \t\n\r")


@given(text=texts, data=st.data())
def test_stream_of_plain_text_looks_as_drawn_afresh(text: str, data: st.DataObject) -> None:
    stream = PlainStream(PlainLook(10, THEME.text))
    for _ in range(4):
        text = applied(text, splice_of(text, *data.draw(st.tuples(fractions, fractions, texts))))
        assert picture(stream.update(text), text) == picture(drawn(text), text)
