"""Text that somebody writes out of sight is shown above the composer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from antiphon.actions import Mode
from antiphon.screens.live_writers import FRAME, LINGER
from tests.app.opened import Opened, World, opened
from tests.clocks import ManualClock
from tests.waiting import until

LINE = "a line of the answer\n\n"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def there(here: World, clock: ManualClock) -> AsyncIterator[Opened]:
    async with opened(here, clock=clock) as one:
        yield one


@pytest.fixture
async def away(here: World, there: Opened) -> Opened:
    """The app, scrolled to the beginning of a long answer that goes on."""
    await here.cell("the first cell")
    await there.send("go")
    await until(lambda: here.aria.prompts, "the turn")
    here.aria.write(LINE * 40)
    await until(lambda: there.shows("a line of"), "the answer")
    await there.press("up", "g")
    await there.sees("the first cell")
    return there


def strip_of(there: Opened) -> list[str]:
    strip = there.screen.query_one("LiveStrip")
    return there.lines[strip.region.y : strip.region.bottom]


async def test_strip_shows_a_writer_out_of_sight_leads_there_and_leaves_the_count_of_new_lines(
    here: World, away: Opened, clock: ManualClock
) -> None:
    for words, keys, back in (
        ("far below", ("f3",), ("g",)),
        (", further", ("i", "enter"), ("up", "g")),
        (", on", (), ("up", "g")),
    ):
        here.aria.write(words)
        await away.sees(f"{words}▌")
        await away.press(*keys)
        if not keys:
            await away.pilot.click("LiveStrip")
        await until(lambda: not strip_of(away), "the strip goes")
        assert away.screen.cells.following
        await away.sees(words)
        await away.press(*back)
    await away.sees("the first cell")
    away.screen.frame.notice.clear_hint()
    here.aria.write("\n\n" + LINE * 2 + "far below")
    await until(lambda: strip_of(away) and "far below▌" in strip_of(away)[-1], "the strip")
    assert strip_of(away)[0].startswith(" aria")
    await until(lambda: "▼" in strip_of(away)[0], "the count of new lines")
    assert not away.shows("new lines")
    here.aria.write(", on and on")
    await away.sees("far below, on and on▌")
    here.aria.end()
    await until(lambda: not away.screen.source.writers(), "the end of the answer")
    await away.pilot.pause()
    assert strip_of(away), "somebody may go on to write"
    clock.ms += round(LINGER * 1_000)
    await until(lambda: not strip_of(away), "the strip goes")
    await away.sees("new lines")


async def test_strip_of_one_row_of_text_has_it_beside_the_name(here: World, there: Opened) -> None:
    await here.cell(LINE * 40)
    await there.send("go")
    await until(lambda: here.aria.prompts, "the turn")
    await there.press("up", "g")
    here.aria.write(" ")
    await until(there.screen.source.writers, "aria begins")
    await there.pilot.pause(FRAME)
    assert not strip_of(there), "there is nothing to show"
    here.aria.write("far below")
    await until(lambda: strip_of(there) and "aria   far below▌" in strip_of(there)[0], "the strip")


async def test_strip_while_editing_leaves_the_cursor_in_its_row_and_shows_the_last_of_several(
    here: World, away: Opened
) -> None:
    await away.press("enter", mode=Mode.EDIT)
    editor = away.screen.area.editor
    assert editor is not None
    await until(lambda: editor.cursor_screen_offset.y, "the editor has its place")
    row = editor.cursor_screen_offset.y
    here.aria.write("far below")
    await away.sees("far below▌")
    assert editor.cursor_screen_offset.y == row
    async with opened(here, as_name="bela") as guest:
        await guest.press("up", "G")
        await guest.edit()
        await guest.type("zebra")
        await until(lambda: strip_of(away) and strip_of(away)[0].startswith(" bela"), "bela's text")
        await until(lambda: strip_of(away)[-1].endswith("+1"), "the count of the others")
