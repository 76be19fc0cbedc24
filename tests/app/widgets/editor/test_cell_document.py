"""The text area's document: exact text, cheap conversions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.widgets.editor.cell_document import CellDocument
from antiphon_kernel.types.records import TextSplice
from tests.app.widgets.editor.texts import applied, edits, splice_of, texts


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


@given(text=texts)
def test_every_offset_has_a_place_and_every_place_an_offset(text: str) -> None:
    document = CellDocument(text)
    for offset in range(len(text) + 1):
        row, column = document.location_of(offset)
        assert document.offset_of((row, column)) == offset
        assert row == text.count("\n", 0, offset)
        assert 0 <= column <= len(document[row])


@given(text=texts, low=st.floats(0, 1), high=st.floats(0, 1))
def test_range_is_a_slice_of_the_text(text: str, low: float, high: float) -> None:
    document = CellDocument(text)
    start, end = sorted((round(low * len(text)), round(high * len(text))))
    found = document.get_text_range(document.location_of(start), document.location_of(end))
    assert found == text[start:end]


def test_splice_outside_the_text_changes_nothing() -> None:
    document = CellDocument("abc")
    with pytest.raises(ValueError, match="outside a text of 3 code points"):
        document.splice(TextSplice(2, 2, "x"))
    assert document.text == "abc"
