"""Marked ranges are found by line as the whole cell would find them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.lines import SourceRun, StyleSpan
from antiphon.render.wrap import graphemes
from antiphon.widgets.block_list.cell_painter import Highlights
from antiphon.widgets.block_list.gutter import Columns, author_labels
from antiphon.widgets.editor import styled
from tests.app.render.notation import render_cell, view
from tests.app.widgets.block_list.sample import ANSWER, THEME

TEXT = ANSWER.format("中文 👍🏽") + "\n\ttab and **bold** text that goes on for more than one line."


def columns_of(run: SourceRun, wanted: range) -> range:
    """The columns in which a run shows some of the wanted text."""
    low, high = max(wanted.start, run.offset), min(wanted.stop, run.offset + run.length)
    if low >= high or not run.width:
        return range(0)
    right = run.column + run.width if run.atomic else run.column_of(high)
    return range(run.column_of(low), right)


@settings(deadline=None)
@given(start=st.integers(0, len(TEXT)), size=st.integers(0, len(TEXT)), width=st.integers(8, 60))
def test_range_is_marked_where_the_cell_shows_it(start: int, size: int, width: int) -> None:
    picture = render_cell(view("text", TEXT), width, THEME)
    end = min(start + size, len(TEXT))
    expected = {
        (number, column)
        for number in range(picture.line_count)
        for run in picture.line(number).runs
        for column in columns_of(run, range(start, end))
    }
    highlights = Highlights([StyleSpan(start, end, Style())])
    assert expected == {
        (line, column)
        for line in range(picture.line_count)
        for mark in highlights.marks(picture.line(line))
        for column in range(mark.start, mark.end)
    }


@given(text=st.text("ab é中", max_size=20), start=st.integers(-2, 24), length=st.integers(0, 12))
def test_styled_marks_exactly_the_columns_of_the_mark(text: str, start: int, length: int) -> None:
    bold = Style(bold=True)
    strip = styled(Strip([Segment(text)]), [StyleSpan(start, start + length, bold)])
    assert strip.text == text
    marked = [bool(one.style and one.style.bold) for one in strip for _ in one.text]
    column, expected = 0, []
    for unit in graphemes(text):
        inside = column < start + length and column + unit.width > start
        expected += [inside] * (unit.end - unit.start)
        column += unit.width
    assert marked == expected


names = st.sets(st.text("anrew中é", min_size=1, max_size=9), max_size=40)


@given(names=names, width=st.sampled_from([40, 80, 120]))
def test_labels_of_authors_differ_and_fit_the_gutter(names: set[str], width: int) -> None:
    columns = Columns.of(width)
    labels = author_labels(names, columns)
    room = 6 if columns.is_wide else 2
    assert labels.keys() == names
    assert len(set(labels.values())) == len(names)
    assert all(0 < cell_len(one) <= room for one in labels.values())


def test_label_of_an_author_tells_names_apart_that_begin_alike() -> None:
    narrow, wide = Columns.of(80), Columns.of(120)
    names = {"anna", "andromeda", "aria", "x"}
    assert author_labels(names, narrow) == {"anna": "aa", "andromeda": "ad", "aria": "ar", "x": "x"}
    assert author_labels(names, wide)["andromeda"] == "andro…"
