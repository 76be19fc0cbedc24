"""Marked ranges are found by line as the whole cell would find them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from antiphon.blocklist.highlights import Highlight, Highlights, Tint
from antiphon.render.cell import render_cell
from antiphon.render.view import CellView
from antiphon_kernel.types.enums import BlockKind, Role, Status
from tests.app.blocklist.sample import AMY, ANSWER, ARIA, BEN, THEME, Sample, SampleApp

TEXT = ANSWER.format("中文 👍🏽") + "\n\ttab and **bold** text that goes on for more than one line."


@settings(deadline=None)
@given(start=st.integers(0, len(TEXT)), size=st.integers(0, len(TEXT)), width=st.integers(8, 60))
def test_a_range_is_marked_where_the_cell_shows_it(start: int, size: int, width: int) -> None:
    view = CellView("b", BlockKind.TEXT, Role.MODEL, Status.DONE, TEXT)
    picture = render_cell(view, width, THEME)
    end = min(start + size, len(TEXT))
    expected = {
        (span.line, column)
        for span in picture.spans_of(start, end)
        for column in range(span.start, span.end)
    }
    highlights = Highlights([Highlight(start, end, Style())])
    assert expected == {
        (line, column)
        for line in range(picture.line_count)
        for mark in highlights.marks(picture.line(line))
        for column in range(mark.start, mark.end)
    }


def styles_of(app: SampleApp, text: str) -> set[Style | None]:
    strips = app.screen._compositor.render_strips()  # noqa: SLF001
    segments = (segment for strip in strips for segment in strip if segment.text == text)
    return {segment.style and segment.style.clear_meta_and_links() for segment in segments}


async def test_blame_tints_text_and_names_its_author_in_the_gutter() -> None:
    sample = Sample()
    block = sample.add("mine and yours", author=AMY)
    app = SampleApp(sample)
    async with app.run_test(size=(80, 24)) as pilot:
        app.cells.set_tints({block: (Tint(0, 9, 0, "amy"), Tint(9, 14, 5, "ben"))})
        await pilot.pause()
        assert app.screen_text()[1] == "am mine and yours"
        assert styles_of(app, "mine and ") != styles_of(app, "yours")
        app.cells.set_tints({})
        await pilot.pause()
        assert app.screen_text()[1] == " │ mine and yours"


async def test_search_hits_stand_out_and_the_current_one_more() -> None:
    sample = Sample()
    block = sample.add("one two one", author=BEN)
    other = sample.add("one", author=ARIA)
    app = SampleApp(sample)
    async with app.run_test(size=(80, 24)) as pilot:
        app.cells.set_matches({block: ((0, 3), (8, 11)), other: ((0, 3),)}, (block, 8, 11))
        await pilot.pause()
        assert len(styles_of(app, "one")) == 2
