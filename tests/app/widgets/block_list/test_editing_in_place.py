"""Editing a cell in the app while others write into the same document."""

from __future__ import annotations

import pytest

from antiphon_kernel.types.enums import Status
from tests.app.widgets.block_list.sample import (
    AMY,
    Sample,
    on_screen,
)
from tests.waiting import until


async def test_entering_and_leaving_keep_the_line_of_the_cursor_on_its_row(sample: Sample) -> None:
    sample.add_turns(8)
    async with on_screen(sample) as (app, pilot):
        app.cells.scroll_rows(-8)
        await pilot.pause()
        row = next(row for row, text in enumerate(app.screen_text()) if text == " │ • two")
        place = app.cells.viewport.places[row]
        assert place is not None
        block = place.block
        offset = sample.here.text(block).index("- two") + 2
        app.area.edit(block, offset)
        await pilot.pause()
        assert app.screen_text()[row].endswith("- two")
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen_text()[row].endswith("• two")
        assert app.area.editor is None and app.cells.has_focus


async def test_cursor_comes_back_to_where_it_was_last(sample: Sample) -> None:
    block = sample.add("one two three", author=AMY)
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block, 4)
        await pilot.press("X", "escape")
        sample.sync()
        sample.peer.splice(block, 0, 0, "zero ")
        app.area.edit(block)
        await pilot.press("Y")
        assert sample.here.text(block) == "zero one XYtwo three"


async def test_editor_without_remembered_place_starts_on_first_finished_visible_line(
    sample: Sample,
) -> None:
    text = "".join(f"paragraph {number}\n\n" for number in range(30))
    block = sample.add(text + "and this is being wri", status=Status.RUNNING)
    short = sample.add("being wri", status=Status.RUNNING)
    async with on_screen(sample) as (app, pilot):
        first = next(row for row in app.screen_text() if "paragraph" in row).removeprefix(" │ ")
        app.area.edit(block)
        await pilot.pause()
        assert app.area.editor is not None
        assert app.area.editor.cursor_offset == text.index(first + "\n")
        app.area.edit(short)
        assert app.area.editor.block == short and app.area.editor.cursor_offset == 0


async def test_wheel_moves_the_cell_under_the_cursor_and_typing_brings_it_back(
    sample: Sample,
) -> None:
    block = sample.add("\n".join(f"line {number}" for number in range(100)))
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block, 0)
        await pilot.pause()
        assert "line 0" in app.screen_text()[1]
        for _ in range(10):
            app.cells.scroll_rows(3)
        await pilot.pause()
        assert " ┃ line 29" in app.screen_text()
        assert not any(row.endswith("line 0") for row in app.screen_text())
        await pilot.press("Z")
        await pilot.pause()
        assert any(row.endswith("Zline 0") for row in app.screen_text())
        assert app.area.editor is not None
        app.area.editor.move_cursor((60, 0))
        await pilot.pause()
        assert any(row.endswith("line 60") for row in app.screen_text())


async def test_end_of_a_stopped_answer_stays_below_its_editor(sample: Sample) -> None:
    block = sample.add("one\n\ntwo", status=Status.ERROR, stop_reason="rate_limited")
    sample.add("after", author=AMY)
    async with on_screen(sample) as (app, pilot):
        row = app.row_with("■ failed")
        app.area.edit(block, 0)
        await pilot.pause()
        assert app.row_with("■ failed · rate_limited") == row
        await pilot.press("enter")
        await pilot.pause()
        assert app.row_with("■ failed") == row + 1


async def test_view_scrolls_past_the_end_of_a_stopped_answer_that_is_edited(sample: Sample) -> None:
    block = sample.add("one\n\ntwo", status=Status.ERROR)
    sample.add("\n\n".join(f"after {number}" for number in range(60)), author=AMY)
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block, 0)
        for _ in range(12):
            app.cells.scroll_rows(1)
            await pilot.pause()
        assert not any("■ failed" in row for row in app.screen_text())


@pytest.mark.parametrize("text", ["■ failed", "after"])
async def test_click_beside_the_editor_leaves_it(sample: Sample, text: str) -> None:
    block = sample.add("# one\n\n\n\ntwo", status=Status.ERROR)
    sample.add("after", author=AMY)
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block, 0)
        await pilot.pause()
        await pilot.click(app.cells, offset=(5, app.row_with(text)))
        await pilot.pause()
        assert app.area.editor is None
        assert app.cells.has_focus


async def test_cell_higher_than_the_screen_is_clipped_to_it(sample: Sample) -> None:
    sample.add("before")
    block = sample.add("\n".join(f"line {number}" for number in range(5000)))
    sample.add("after", author=AMY)
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block, sample.here.text(block).index("line 2500"))
        await pilot.pause()
        assert app.area.editor is not None
        assert app.area.editor.region.height == 24
        await pilot.press(*["pagedown"] * 3)
        await pilot.pause()
        assert app.area.editor.cursor_offset > sample.here.text(block).index("line 2560")
        assert app.row_with(f"line {app.area.editor.cursor_location[0]}") < 24


@pytest.mark.usefixtures("every_frame")
async def test_terminal_cursor_goes_along_when_the_editor_moves(sample: Sample) -> None:
    above = sample.add("above\n\nabove", author=AMY)
    block = sample.add("line\n" * 4)
    sample.add("below\n\n" * 2, author=AMY)
    async with on_screen(sample, size=(80, 24)) as (app, pilot):
        app.area.edit(block, 6)
        await pilot.pause()
        editor = app.area.editor
        assert editor is not None
        before, size = app.cursor_position, editor.size
        app.cells.scroll_rows(-1)
        sample.peer.append(above, "\n\nmore of it")
        app.cells.pin(block, 6, editor.cursor_row + 8)
        await until(lambda: app.cursor_position != before, "the cursor has moved")
        assert editor.size == size
        row = app.cursor_position.y
        assert app.screen_text()[row].endswith("line")
        assert app.cursor_position == editor.cursor_screen_offset
