"""New text of others is drawn in their colour for a moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from antiphon.widgets.block_list import CellModel
from antiphon.widgets.block_list.remote_cursors import INK_SECONDS, STEP_SECONDS, Ink, RemoteCursors
from antiphon.widgets.editor import CellEditor, InkRange
from antiphon_kernel.types.enums import Activity, BlockKind, Status
from antiphon_kernel.types.records import TextSplice
from tests.app.rows import terminal_rows
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
