"""New text of others is drawn in their colour for a moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.wrap import graphemes
from antiphon.textual_patches.screens import terminal_rows
from antiphon.widgets.block_list import CellModel
from antiphon.widgets.block_list.gutter import Columns
from antiphon.widgets.block_list.remote_cursors import (
    FLAG_SECONDS,
    INK_SECONDS,
    STEP_SECONDS,
    Ink,
    RemoteCursors,
)
from antiphon.widgets.editor import CellEditor, CursorLabel, InkRange, labelled, written_over
from antiphon_kernel.types.enums import Activity, BlockKind, Status
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import TextSplice
from tests.app.widgets.block_list.sample import (
    AMY,
    THEME,
    Sample,
    SampleApp,
    aria_writing,
    ben_at,
    on_screen,
)
from tests.clocks import ManualClock
from tests.waiting import until

ARIAS: Final = THEME.ink[3]
BENS: Final = THEME.ink[5]


def colour_of(app: SampleApp, text: str) -> object:
    """The colour of the first character of a text on the screen."""
    for row in terminal_rows(app):
        at = row.text.find(text)
        if at >= 0:
            segment = next(iter(row.crop(at, at + 1)))
            return (segment.style or Style()).color
    raise AssertionError(app.screen_text())


@given(
    text=st.text("ab", min_size=4, max_size=30),
    changes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.text("xyz", max_size=3))),
)
def test_ink_marks_exactly_what_was_inserted(
    text: str, changes: list[tuple[int, int, str]]
) -> None:
    ink, marked = Ink(ManualClock()), [(one, False) for one in text]
    for offset, deleted, inserted in changes[:20]:
        offset = min(offset, len(marked))
        splice = TextSplice(offset, min(deleted, len(marked) - offset), inserted)
        end = splice.offset + splice.deleted
        marked[splice.offset : end] = [(one, True) for one in splice.inserted]
        ink.carry("block", splice)
        ink.add("block", splice.offset, splice.offset + len(splice.inserted), 1)
    ranges = ink.of("block")
    assert [number for one in ranges for number in range(one.start, one.end)] == [
        number for number, (_, is_new) in enumerate(marked) if is_new
    ]


def test_ink_ages_in_steps_and_goes() -> None:
    clock = ManualClock(0)
    ink = Ink(clock)
    ink.add("block", 0, 3, 1)
    seen = [ink.of("block")]
    clock.ms += round(STEP_SECONDS * 1000) - 1
    assert [ink.next_fade] == [0.01], "a timer cannot be shorter"
    while ink.next_fade is not None:
        clock.ms += round(ink.next_fade * 1000) + 1
        ink.fade()
        seen.append(ink.of("block"))
    assert seen == [*((InkRange(0, 3, 1, step),) for step in range(4)), ()]
    assert clock.ms < INK_SECONDS * 1000 + STEP_SECONDS * 100


def test_ink_of_a_stream_is_few_ranges() -> None:
    clock = ManualClock(0)
    ink = Ink(clock)
    for number in range(1000):
        clock.ms += 5
        ink.carry("block", TextSplice(number, 0, "x"))
        ink.add("block", number, number + 1, 1)
        ink.fade()
    assert len(ink.of("block")) <= 10


def test_colour_at_prefers_a_cursor_that_is_there_to_somebody_who_writes_elsewhere() -> None:
    cursors = RemoteCursors(ManualClock())
    idle = replace(ben_at("block", 4), activity=Activity.IDLE)
    cursors.update_presence({5: aria_writing("block", 200), 6: idle})
    assert cursors.colour_at("block", 4) == idle.colour
    assert cursors.colour_at("block", 150) == aria_writing("block", 200).colour


@pytest.mark.parametrize("edited", [False, True])
async def test_text_of_others_has_their_colour_until_it_is_old(edited: bool) -> None:
    sample, clock = Sample(), ManualClock()
    block = sample.add("One two three.\n\nFour", status=Status.RUNNING)
    async with on_screen(sample, clock=clock) as (app, pilot):
        plain = colour_of(app, "One")
        if edited:
            app.area.edit(block, 3)
        app.set_present(5, aria_writing(block, 20))
        app.set_present(6, ben_at(block, 4))
        await pilot.pause()
        sample.peer.splice(block, 4, 0, "new ")
        sample.peer.append(block, " five")
        await until(lambda: "five" in "".join(app.screen_text()), "the text")
        assert colour_of(app, "five") in {one.color for one in ARIAS}
        assert colour_of(app, "ew two") in {one.color for one in BENS}
        assert colour_of(app, "One") == plain
        clock.ms += round(INK_SECONDS * 1000)
        await until(lambda: colour_of(app, "five") == colour_of(app, "ew two") == plain, "faded")


def test_own_text_output_and_what_is_not_wanted_have_no_ink(sample: Sample) -> None:
    block = sample.add("One two three.")
    output = sample.add("$ ls", kind=BlockKind.TOOL_RESULT, status=Status.RUNNING)
    source = CellModel(sample.here, me=AMY, clock=ManualClock())
    assert source.view(output).text == "$ ls"
    editor = CellEditor(sample.here, block)
    editor.insert("Me")
    sample.peer.append(output, "\nREADME.md")
    assert not source.ink.of(block)
    assert not source.ink.of(output)
    source.ink.is_shown = False
    sample.peer.append(block, " five")
    assert not source.ink.of(block)


def test_removed_text_shows_where_it_was_if_that_was_asked_for(sample: Sample) -> None:
    block = sample.add("One two three.")
    source = CellModel(sample.here, me=AMY, clock=ManualClock())
    assert source.view(block).text == "One two three."
    source.ink.flash(block)
    sample.peer.splice(block, 3, 4, "")
    assert source.ink.of(block) == (InkRange(0, 10, None, 0),)
    sample.peer.splice(block, 0, 3, "")
    assert source.ink.of(block)[0].end == 7


async def test_rows_without_new_text_are_not_drawn_again(sample: Sample) -> None:
    block = sample.add("a line\n\n" * 8, status=Status.RUNNING)
    async with on_screen(sample) as (app, pilot):
        app.set_present(5, aria_writing(block, 64))
        await pilot.pause()
        before = {y: app.cells.render_line(y) for y in range(1, 12)}
        rows = {y: app.cells._rows.strip(y) for y in before}  # noqa: SLF001
        sample.peer.append(block, "and on")
        await until(lambda: "and on" in "".join(app.screen_text()), "the text")
        assert all(app.cells._rows.strip(y) is rows[y] for y in before)  # noqa: SLF001


FULL = "0123456789" * 40
SIZES = [(40, 10), (96, 24)]


def gutter_of(row: str, columns: int) -> str:
    return row[: 8 if columns >= 91 else 2]


@pytest.mark.parametrize(
    ("size", "edited"), [(SIZES[0], False), (SIZES[0], True), (SIZES[1], True)]
)
async def test_cursor_in_the_text_has_name_in_row_above(
    sample: Sample, size: tuple[int, int], edited: bool
) -> None:
    block = sample.add(FULL)
    async with on_screen(sample, size=size) as (app, pilot):
        if edited:
            assert app.area.edit(block, len(FULL))
            editor = app.area.editor
            await until(lambda: editor and editor.region.x, "the editor in its place")
        await pilot.pause()
        before = [gutter_of(row, size[0]) for row in app.screen_text()]
        app.set_present(6, ben_at(block, 120))
        await until(lambda: any("ben" in text for text in app.screen_text()), "the name")
        picture = app.cells.shown.rendering(block)
        line, column = picture.place_of(120)
        column += Columns.of(size[0] - 1).gutter
        row = app.cells.viewport.row_of(block, line)
        assert row is not None
        rows = app.screen_text()
        assert rows[row - 1].find("ben") == column
        assert [gutter_of(text, size[0]) for text in rows] == before


async def test_flag_of_first_row_on_screen_is_in_row_below(sample: Sample) -> None:
    block = sample.add(FULL * 20)
    async with on_screen(sample) as (app, pilot):
        first = app.cells.viewport.places[0]
        assert first is not None
        offset = app.cells.shown.rendering(block).offset_at(first.line, 10)
        assert offset is not None
        app.set_present(6, ben_at(block, offset))
        await pilot.pause()
        assert app.screen_text()[1].find("ben") == 13


@pytest.mark.parametrize(("size", "rows"), [(SIZES[0], 1), (SIZES[1], 2), ((200, 60), 1)])
async def test_name_at_end_of_last_full_row_is_seen_beside_own_cursor(
    size: tuple[int, int], rows: int
) -> None:
    """Rows of one letter, so that the editor is as full as the page; the own cursor is in front."""
    sample = Sample()
    text = "x" * (Columns.of(size[0] - 1).prose * rows)
    block = sample.add(text)
    async with on_screen(sample, size=size) as (app, pilot):
        assert app.area.edit(block, 0)
        app.set_present(6, ben_at(block, len(text)))
        await pilot.pause()
        assert any("ben" in row for row in app.screen_text())
        editor = app.area.editor
        assert editor is not None and len(editor.text) == len(text)


async def test_flag_goes_when_the_cursor_has_not_moved_for_a_while() -> None:
    clock = ManualClock()
    cursors = RemoteCursors(clock)
    cursors.update_presence({6: ben_at("block", 1)})
    assert cursors.of("block")[0].has_moved
    clock.ms += round(FLAG_SECONDS * 500)
    assert not cursors.fade()
    cursors.update_presence({6: ben_at("block", 2)})
    clock.ms += round(FLAG_SECONDS * 500)
    assert not cursors.fade()
    clock.ms += round(FLAG_SECONDS * 500)
    assert cursors.next_fade, "a timer of Textual cannot be shorter"
    assert cursors.fade() == {"block"}
    assert not cursors.of("block")[0].has_moved
    cursors.update_presence({6: replace(ben_at("block", 2), activity="idle")})
    assert not cursors.of("block")[0].has_moved, "it is where it was"
    assert cursors.update_presence({}) == ({"block"}, False)
    assert not cursors.of("block")
    cursors.update_presence({5: aria_writing("block", 1)})
    (aria,) = cursors.of("block")
    assert aria.streaming and not aria.has_moved, "who writes on and on covers no other row"
    assert cursors.next_fade is None


async def test_flag_leaves_the_name_of_the_author_and_the_row_that_is_typed_in(
    sample: Sample,
) -> None:
    block = sample.add(FULL)
    async with on_screen(sample) as (app, pilot):
        app.set_present(6, ben_at(block, 1))
        await pilot.pause()
        assert app.screen_text()[0] == " aria  ben"
        assert app.area.edit(block, 10)
        app.set_present(6, ben_at(block, 120))
        await pilot.pause()
        picture = app.cells.shown.rendering(block)
        line, column = picture.place_of(120)
        row = app.cells.viewport.row_of(block, line)
        assert row is not None and line == 1
        flag = row + 1
        await until(lambda: app.screen_text()[flag].find("ben") == column + 3, "the flag below")


async def test_two_cursors_in_one_line_have_both_names_side_by_side(sample: Sample) -> None:
    block = sample.add("x" * 60 + "\n\n" + "y" * 68)
    async with on_screen(sample) as (app, pilot):
        app.set_present(5, ben_at(block, 65))
        dana = PresenceState("4" * 32, "dana", "human", 7, "u", block, 66, None, "typing")
        app.set_present(6, dana)
        await pilot.pause()
        rows = app.screen_text()
        line = next(number for number, row in enumerate(rows) if "yyy" in row)
        assert "bendana" in rows[line - 1]


async def test_name_at_the_end_of_a_line_stands_behind_it_and_goes(sample: Sample) -> None:
    block = sample.add("One two.")
    clock = ManualClock()
    async with on_screen(sample, clock=clock) as (app, pilot):
        app.set_present(6, ben_at(block, 8))
        await pilot.pause()
        assert app.screen_text()[1] == " │ One two.▌ben"
        clock.ms += round(FLAG_SECONDS * 1000)
        await until(lambda: app.screen_text()[1] == " │ One two.▌", "the name is gone")


async def test_gutter_that_names_the_author_keeps_that_name(sample: Sample) -> None:
    block = sample.add(FULL, author=AMY)
    async with on_screen(sample, size=(110, 24)) as (app, pilot):
        before = app.screen_text()[0][:8]
        for _ in range(2):
            app.set_present(6, ben_at(block, 3))
            await pilot.pause()
            assert app.screen_text()[0][:6] == before[:6]
            app.area.edit(block, 0)


def cell_width(text: str) -> int:
    return sum(unit.width for unit in graphemes(text))


names = st.lists(st.text("abcdé中", min_size=1, max_size=6), max_size=3)


@given(text=st.text("ab 中", max_size=30), names=names, width=st.integers(31, 60), data=st.data())
def test_labelled_line_has_each_name_whole_or_as_flag(
    text: str, names: list[str], width: int, data: st.DataObject
) -> None:
    strip = Strip([Segment(text)]) if text else Strip([])
    labels = [
        CursorLabel(
            data.draw(st.integers(0, strip.cell_length)),
            name,
            Style(),
            Style(),
            may_be_flag=True,
            stays=data.draw(st.booleans()),
        )
        for name in names
    ]
    line, flags = labelled(strip, labels, width)
    assert line.cell_length <= max(width, strip.cell_length)
    assert line.text.startswith(text.rstrip())
    behind = line.text[len(text.rstrip()) :]
    for label in labels:
        assert label in flags or label.name in behind
    shown = [label for label in labels if label not in flags]
    assert cell_len(behind.strip()) >= sum(cell_len(label.name) for label in shown)


units = st.lists(st.sampled_from(["a", " ", "中", "👩\u200d👧"]), max_size=20)


@given(text=units.map("".join), start=st.integers(0, 40))
def test_text_written_over_a_line_leaves_the_rest_of_it_in_place(text: str, start: int) -> None:
    line = Strip([Segment(text)], cell_width(text))
    drawn = written_over(line, start, "ben", Style())
    assert all(segment.text for segment in drawn)
    assert drawn.cell_length == cell_width(drawn.text) == max(line.cell_length, start + 3)
    before, behind = drawn.text.split("ben", 1)
    assert cell_width(before) == start
    assert text.endswith(behind.lstrip()) or not behind.strip()
