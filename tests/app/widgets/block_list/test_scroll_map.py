"""Marks of the scroll bar."""

from __future__ import annotations

from antiphon.textual_patches.screens import terminal_rows
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon.widgets.block_list.scroll_map import AUTHOR, HIT, UNREAD, ScrollMap
from antiphon.widgets.block_list.text_finder import Hit
from antiphon.widgets.block_list.viewport import LineRef
from tests.app.widgets.block_list.sample import (
    THEME,
    Sample,
    SampleApp,
    on_screen,
)
from tests.waiting import until


def bar_of(app: SampleApp) -> str:
    """The column of the scroll bar, from above."""
    return "".join(row.crop(79, 80).text for row in terminal_rows(app))


async def test_map_shows_what_is_unread(sample: Sample) -> None:
    for number in range(60):
        sample.add(f"cell {number}")
    async with on_screen(sample) as (app, pilot):
        app.cells.viewport.scroll_home()
        await pilot.pause()
        for number in range(60):
            sample.add(f"new {number}")
        await until(lambda: UNREAD in bar_of(app), "the mark")
        assert bar_of(app).index(UNREAD) >= 8


async def test_map_shows_nothing_of_what_a_context_is_opened_with_as_unread(sample: Sample) -> None:
    async with on_screen(sample) as (app, _):
        sample.add_turns(20)
        await until(lambda: AUTHOR in bar_of(app), "the cells")
        assert UNREAD not in bar_of(app)


def test_hits_are_marked_where_they_are_in_a_long_cell(sample: Sample) -> None:
    block = sample.add("x" * 1_000)
    scroll_map = ScrollMap(SampleApp(sample).source, HeightIndex([(block, 100)]))
    hits = [(block, [Hit(0, 1), Hit(500, 510), Hit(999, 1_000)])]
    scroll_map.update(20, THEME, unread=(), start=None, hits=hits)
    assert [row for row, mark in scroll_map.marks.items() if mark.text == HIT] == [0, 10, 19]
    assert scroll_map.update(100, THEME, unread=(), start=None, hits=hits)
    assert not scroll_map.marks, "all of the document is seen"


class CountedHeights(HeightIndex):
    """Heights that count how often they are asked for a row."""

    asked = 0

    def find(self, row: int) -> tuple[str, int] | None:
        self.asked += 1
        return super().find(row)


def test_map_costs_its_rows_not_those_of_the_document(sample: Sample) -> None:
    blocks = sample.add_turns(400)
    app = SampleApp(sample)
    heights = CountedHeights((block, 3) for block in blocks)
    scroll_map = ScrollMap(app.source, heights)
    hits = [(block, [Hit(0, 1)]) for block in blocks[:2]]
    start = LineRef(blocks[-1], 0)
    assert scroll_map.update(20, THEME, unread=(), start=start, hits=hits)
    assert heights.asked == 20
    assert scroll_map.marks[0].text == HIT
    assert scroll_map.marks[19].text == UNREAD
    assert not scroll_map.update(20, THEME, unread=(), start=start, hits=hits)
