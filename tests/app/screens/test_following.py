"""Following somebody, pointing at a line, asking the others to come."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from antiphon.actions import Mode
from antiphon.screens import following
from tests.app.opened import Opened, World, opened
from tests.waiting import until


async def known(there: Opened, name: str) -> None:
    """Wait until the app knows that somebody is here."""
    session = there.app.session
    await until(lambda: name in {one.username for one in session.presence().values()}, name)


@pytest.fixture
async def pair(here: World, there: Opened) -> AsyncIterator[tuple[Opened, Opened]]:
    """Two people in a document of many cells, both at its end."""
    for number in range(20):
        await here.cell(f"cell {number}")
    async with opened(here, as_name="bela") as guest:
        await guest.sees("cell 19")
        await known(there, "bela")
        yield there, guest


async def test_follow_shows_what_the_other_sees_and_writes_until_the_first_key(
    pair: tuple[Opened, Opened],
) -> None:
    there, guest = pair
    await there.press("up", "n")
    await there.sees("Nothing is searched for")
    await there.press("f")
    await there.sees("FOLLOWING bela · any key stops")
    await guest.press("up", "g")
    await there.sees("cell 0")
    await guest.press("G")
    await there.sees("cell 19")
    await there.press("k")
    await there.sees("You are on your own again, not with bela.")
    await guest.press("g")
    await guest.sees("cell 0")
    assert not there.shows("cell 0")
    for key in ("f", "escape"):  # which do no more than to end it
        await there.press("f")
        await there.sees("FOLLOWING bela")
        there.screen.hint("-")
        await there.press(key)
        await there.sees("You are on your own again")
        assert there.screen.mode is Mode.NAVIGATE
        await until(lambda: there.screen.following.stop() is False, "nobody is followed")
    await there.press("f")
    await guest.press("enter", mode=Mode.EDIT)
    await guest.type("zebra")
    await there.sees("zebra")
    assert there.shows("cell 0")


async def test_click_on_a_person_in_the_sidebar_follows_them_until_they_leave(here: World) -> None:
    await here.cell("a cell")
    async with opened(here, size=(120, 12)) as there:
        async with opened(here, as_name="bela") as guest:
            await guest.press("up")
            await until(lambda: any("bela" in line[:24] for line in there.lines), "bela")
            row = next(y for y, line in enumerate(there.lines) if "bela" in line[:24])
            await there.pilot.click("Sidebar", offset=(4, row))
            await there.sees("FOLLOWING bela")
            assert there.screen.mode is not Mode.CONTEXTS
        await there.sees("Who you followed has left.")


async def test_gather_and_point_lead_the_others_by_one_key(
    pair: tuple[Opened, Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SHOWN_SECONDS", 600.0)
    there, guest = pair
    await guest.press("up", "g")
    await guest.sees("cell 0")
    guest.screen.call_action("gather")
    await there.sees("bela asks you to come: F3 goes there.")
    await there.press("f3")
    await there.sees("cell 0")
    assert there.screen.following.stop() is False
    await there.press("ctrl+end")
    await there.sees("cell 19")
    await guest.press("p")
    await guest.sees("▾ you")
    await there.sees("bela points at a line out of sight: F3 goes there.")
    await there.press("f3")
    await there.sees("▾ bela")
    rows = there.lines
    flag = next(y for y, row in enumerate(rows) if "▾ bela" in row)
    assert any("cell 0" in row for row in rows[flag - 1 : flag + 2])
    monkeypatch.setattr(following, "SHOWN_SECONDS", 0.01)
    await guest.press("p")
    await until(lambda: not there.shows("▾ bela"), "the mark goes")


async def test_point_once_more_is_at_the_next_line_if_there_is_one(
    there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SHOWN_SECONDS", 600.0)
    block = await there.cell("first\n\nsecond\n\nthird", "third")
    await there.press("up", "p")
    mine = there.screen.following
    text = there.screen.source.text(block)

    def pointed() -> str:
        place = mine.pointer
        return "" if place is None else text[place.start : place.end]

    assert pointed() == "first"
    await there.press("p", "p")
    assert pointed() == "third"
    await there.press("p")
    assert pointed() == "first"
    await there.cell("only")
    await there.press("G", "p", "p")
    await there.sees("there is no other line")
