"""Every key of the list, in every mode in which it works, does something or says why not."""

from __future__ import annotations

from collections.abc import Iterable

from textual.command import CommandPalette

from antiphon.actions import ACTIONS, Action, Mode, shown_key
from tests.app.opened import Opened, World, opened
from tests.app.screens.key_effects import appearance, noticed
from tests.waiting import screen_updated, until

LEAVE: set[str] = {"quit"}
"""Ends the app, which other tests have."""


async def enter(there: Opened, mode: Mode) -> None:
    """Go to a mode from wherever the last key has led, and let all effects come."""
    await screen_updated()
    if there.screen.mode is mode and len(there.app.screen_stack) == 1:
        return
    if isinstance(there.app.screen, CommandPalette):
        # Taken away without its knowledge it would go on looking for its list.
        await there.press("escape")
        await until(lambda: not isinstance(there.app.screen, CommandPalette), "it has closed")
    while len(there.app.screen_stack) > 1:
        await there.app.pop_screen()
    screen = there.screen
    if screen.mode is Mode.CONTEXTS:
        screen.call_action("leave_contexts")
    if screen.mode is Mode.FIND:
        screen.call_action("leave_find")
    screen.area.leave()
    match mode:
        case Mode.WRITE:
            screen.composer.editor.focus()
        case Mode.NAVIGATE:
            screen.cells.focus()
        case Mode.EDIT:
            screen.cells.focus()
            screen.area.edit(screen.source.ids()[1])
        case Mode.CONTEXTS:
            screen.call_action("sidebar")
        case Mode.FIND:
            screen.call_action("find")
    await there.mode(mode)
    await screen_updated()


def keys_of(mode: Mode) -> list[tuple[Action, str]]:
    return [
        (one, key)
        for one in ACTIONS
        for key in one.keys
        if mode in one.modes and one.name not in LEAVE
    ]


async def without_effect(there: Opened, modes: Iterable[Mode]) -> list[str]:
    """Press each key of each mode; return those after which nothing was different."""
    silent: list[str] = []
    for mode in modes:
        for action, key in keys_of(mode):
            await enter(there, mode)
            if not await noticed(there, key):
                silent.append(f"{mode.value} {key} ({action.name})")
    return silent


async def test_key_among_cells_has_an_effect_or_a_hint(here: World) -> None:
    for number in range(6):
        await here.cell(f"# Cell {number}\n\nwith some text\n\nand more")
    await here.cell("much\n\nthought", kind="thinking")
    async with opened(here) as there:
        await there.sees("Cell 5")
        assert await without_effect(there, Mode) == []


async def test_key_in_an_empty_context_has_an_effect_or_a_hint(there: Opened) -> None:
    modes = [Mode.NAVIGATE, Mode.CONTEXTS, Mode.FIND, Mode.WRITE]
    assert await without_effect(there, modes) == []


async def test_key_that_means_nothing_among_the_cells_says_so(there: Opened) -> None:
    await enter(there, Mode.NAVIGATE)
    for key in ("q", "c", "8", "f8", "ctrl+x"):
        there.burst(key)
        await there.sees(f"{shown_key(key)} does nothing here")


async def test_paste_among_the_cells_says_where_text_goes(there: Opened) -> None:
    from textual.events import Paste

    await enter(there, Mode.NAVIGATE)
    there.app.post_message(Paste("text"))
    await there.sees("Nothing is pasted here")


async def test_key_without_a_meaning_is_told_from_one_with_an_effect(there: Opened) -> None:
    await enter(there, Mode.WRITE)
    await there.sees("live")
    before = None
    while before != (now := appearance(there)):
        before = now
        await there.pilot.pause(0.2)
    assert not await noticed(there, "f9", looks=20)
