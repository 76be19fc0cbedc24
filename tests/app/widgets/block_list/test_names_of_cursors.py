"""The name of somebody whose cursor is in a line that has no room for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widgets import TextArea

from antiphon.widgets.editor.overlays import (
    END_CURSOR,
    CursorLabel,
    RemoteCursor,
    first_overflowing,
    tagged,
)
from antiphon.widgets.editor.row_cache import RowCache
from tests.app.widgets.block_list.sample import AMY, THEME, Sample, ben_at, on_screen

FULL = "0123456789" * 40


@pytest.mark.parametrize(("columns", "named"), [(80, "b│ "), (96, "ben   │ ")])
async def test_cursor_name_without_room_in_line_stands_in_gutter(columns: int, named: str) -> None:
    sample = Sample()
    block = sample.add(FULL)
    async with on_screen(sample, size=(columns, 24)) as (app, pilot):
        app.set_present(6, ben_at(block, 120))
        await pilot.pause()
        assert [row for row in app.screen_text() if row.startswith(named)]
        assert not any("ben" in row[9:] for row in app.screen_text())
        app.set_present(6, ben_at(block, len(FULL)))
        await pilot.pause()
        assert not [row for row in app.screen_text() if row.startswith(named)]
        assert any(row.endswith(f"{END_CURSOR}ben") for row in app.screen_text())


@pytest.mark.parametrize(("columns", "named"), [(80, "b┃ "), (96, "ben   ┃ ")])
async def test_cursor_name_without_room_in_edited_cell_stands_in_gutter(
    columns: int, named: str, sample: Sample
) -> None:
    block = sample.add(FULL)
    async with on_screen(sample, size=(columns, 24)) as (app, pilot):
        assert app.area.edit(block, 0)
        await pilot.pause()
        app.set_present(6, ben_at(block, 120))
        await pilot.pause()
        assert [row for row in app.screen_text() if row.startswith(named)]
        app.set_present(6, None)
        await pilot.pause()
        assert not [row for row in app.screen_text() if row.startswith(named)]


async def test_gutter_that_names_the_author_keeps_that_name(sample: Sample) -> None:
    block = sample.add(FULL, author=AMY)
    async with on_screen(sample, size=(110, 24)) as (app, pilot):
        before = app.screen_text()[0][:8]
        for _ in range(2):
            app.set_present(6, ben_at(block, 3))
            await pilot.pause()
            assert app.screen_text()[0][:6] == before[:6]
            app.area.edit(block, 0)


names = st.lists(st.text("abcdé中", min_size=1, max_size=6), max_size=3)


@given(text=st.text("ab 中", max_size=30), names=names, width=st.integers(31, 60), data=st.data())
def test_first_overflowing_is_first_label_without_room(
    text: str, names: list[str], width: int, data: st.DataObject
) -> None:
    strip = Strip([Segment(text)]) if text else Strip([])
    tags = [
        CursorLabel(data.draw(st.integers(0, strip.cell_length)), name, Style(), Style())
        for name in names
    ]
    homeless = first_overflowing(strip, tags, width)
    drawn = tagged(strip, tags, width, named_elsewhere=homeless)
    assert drawn.cell_length <= max(width, strip.cell_length)
    if homeless is None:
        for tag in tags:
            assert tag.name in drawn.text
        assert drawn.cell_length >= strip.cell_length + sum(cell_len(name) for name in names)


async def test_row_is_drawn_anew_when_the_name_in_it_moves_to_the_gutter(sample: Sample) -> None:
    block = sample.add("0123456789" * 4)
    async with on_screen(sample) as (app, pilot):
        assert app.area.edit(block, 0)
        await pilot.pause()
        editor, rows = app.query_one(TextArea), RowCache()
        benedict = [RemoteCursor(6, "b" * 32, "benedict", 0, 3)]
        rows.layout(editor, THEME, 0, 1, 45, benedict, 1)
        cut = rows.strip(0)
        rows.layout(editor, THEME, 0, 1, 45, benedict, 0)
        named_beside = rows.strip(0)
        assert cut is not None and "…" in cut.text
        assert named_beside is not None and "…" not in named_beside.text
