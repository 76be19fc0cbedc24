"""A page or the palette that is clicked twice, faster than it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from textual import events

from antiphon.palette import PaletteCommands, PaletteEntry
from antiphon.screens.picker import PickerEntry, PickerModal
from antiphon.textual_patches.screens import LaidOutPalette
from tests.app.opened import Opened
from tests.waiting import UPDATE_SECONDS, screen_updated, until


async def click_twice(there: Opened, x: int, y: int) -> None:
    """Send both clicks at once, as a slow line delivers them."""
    for kind in (events.MouseDown, events.MouseUp) * 2:
        there.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
    await screen_updated()


async def row_of(there: Opened, text: str) -> int:
    await there.sees(text)
    return next(row for row, line in enumerate(there.lines) if text in line)


async def test_palette_that_is_dismissed_or_goes_with_the_app_searches_no_longer(
    there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: PaletteCommands) -> Iterator[PaletteEntry]:
        await asyncio.Event().wait()
        return iter(())

    monkeypatch.setattr(PaletteCommands, "_entries", never)
    for end in (lambda: there.app.screen.dismiss(None), there.app.exit):
        await there.press("ctrl+p")
        await until(lambda: isinstance(there.app.screen, LaidOutPalette), "the palette")
        palette = there.app.screen
        searches = [one for one in there.app.workers if one.node is palette]
        end()
        assert [one.is_cancelled for one in searches] == [True]


async def test_page_clicked_twice_closes_once_and_a_list_outlives_one_column_and_waits_for_keys(
    there: Opened,
) -> None:
    await there.press("ctrl+p")
    await until(lambda: isinstance(there.app.screen, LaidOutPalette), "the palette")
    await click_twice(there, 1, 21)
    await until(lambda: there.app.screen is there.screen, "the document")
    assert there.app.is_running

    await there.press("ctrl+p")
    await there.type("help")
    await click_twice(there, 20, await row_of(there, "Help   "))
    await until(lambda: not isinstance(there.app.screen, LaidOutPalette), "the page of keys")
    await screen_updated()
    assert len(there.app.screen_stack) == 2

    async def ask(typed: str) -> list[PickerEntry]:
        return [PickerEntry("one", "the only choice")]

    page, chosen = there.app.screen, list[str | None]()
    there.app.push_screen(PickerModal("Choose", ask), chosen.append)
    await click_twice(there, 20, await row_of(there, "the only choice"))
    await until(lambda: there.app.screen is page, "the page below")
    await screen_updated()
    assert there.app.screen is page
    assert chosen == ["one"]

    # Enter chooses from what was typed, though the list is still being made.
    async def ask_slowly(typed: str) -> list[PickerEntry]:
        await asyncio.sleep(UPDATE_SECONDS)
        return [PickerEntry(one, one) for one in ("first", "second") if typed in one]

    chosen.clear()
    there.app.push_screen(PickerModal("Choose", ask_slowly), chosen.append)
    await there.sees("first")
    await there.press("s", "e", "enter")
    await until(lambda: chosen, "the choice")
    assert chosen == ["second"]

    there.app.push_screen(PickerModal("Choose", ask))
    await there.sees("the only choice")
    await there.pilot.resize_terminal(1, 1)
    await there.pilot.resize_terminal(80, 24)
    await there.sees("the only choice")
