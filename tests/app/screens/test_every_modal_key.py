"""Every key of the pages and questions over the document does something."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from textual.screen import ModalScreen

from antiphon.screens import history, modals, panels, picker, reading
from tests.app.opened import Opened, World, opened
from tests.app.screens.key_effects import noticed, own_keys
from tests.waiting import screen_updated, until

LONG: Final = "\n".join(f"line {number}" for number in range(90))


@dataclass(frozen=True)
class Cover:
    """A way to open a page, and keys that make another one do something there."""

    show: Callable[[Opened], object]
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    last: tuple[str, ...] = ()
    """Keys after which the page is not as before: they are pressed at the end, in this order."""


def pushing(make: Callable[[Opened], ModalScreen[Any]]) -> Callable[[Opened], object]:
    return lambda there: there.app.push_screen(make(there))


async def choices(typed: str) -> list[picker.PickerEntry]:
    return [picker.PickerEntry(one, one) for one in ("one", "two", "three") if typed in one]


async def named(line: str) -> str:
    return line


SCROLLED: Final = {"k": ("j",), "g": ("G",)}
LISTED: Final = {
    **dict.fromkeys(("up", "k", "g", "home"), ("G",)),
    **dict.fromkeys(("down", "j", "G", "end", "space"), ("g",)),
}

ENDS: Final = {"g", "G", "home", "end"}
"""Keys that lead to an end of a page or a list."""
COVERS: Final[Mapping[type[ModalScreen[Any]], Cover]] = {
    modals.TextModal: Cover(lambda there: there.screen.call_action("help"), SCROLLED),
    modals.ConfirmModal: Cover(pushing(lambda there: modals.ConfirmModal("Really?"))),
    modals.KeyModal: Cover(pushing(lambda there: modals.KeyModal("word " * 900)), SCROLLED),
    modals.LineModal: Cover(
        pushing(lambda there: modals.LineModal("Name", named, enter="take it", longest=9))
    ),
    modals.CommandModal: Cover(
        pushing(lambda there: modals.CommandModal(LONG, "It is long.")),
        {**SCROLLED, "ctrl+r": ("G",)},
    ),
    history.HistoryModal: Cover(
        lambda there: there.screen.call_action("history"),
        {
            **SCROLLED,
            **dict.fromkeys(("right", "end"), ("left",)),
            **dict.fromkeys(("shift+right", "right_square_bracket"), ("home",)),
        },
        last=("r", "F"),
    ),
    reading.ReadingPanel: Cover(
        lambda there: there.screen.call_action("reading"), {**LISTED, "z": ("z",)}
    ),
    picker.PickerModal: Cover(
        pushing(lambda there: picker.PickerModal("Choose", choices)), {"up": ("down",)}
    ),
    panels.ContextsPanel: Cover(
        lambda there: there.screen.call_action("contexts"),
        {**LISTED, "A": ("G",)},
        last=("A", "F"),
    ),
    panels.PeoplePanel: Cover(lambda there: there.screen.call_action("people"), LISTED),
}


def modal_classes(base: type[Any] = ModalScreen) -> Iterator[type[Any]]:
    """Yield the pages of the app that are shown: those that no other one is made from."""
    below = [one for one in base.__subclasses__() if one.__module__.startswith("antiphon.")]
    for one in below:
        yield from modal_classes(one)
    if not below and base is not ModalScreen:
        yield base


@pytest.fixture
async def there(here: World) -> AsyncIterator[Opened]:
    """The app in NAVIGATE, at a cell of many versions, with past hints and another context."""
    await here.call("context.create", label="other")
    for number in range(9):
        await here.cell(f"Cell {number}\n" + LONG)
    cell = await here.cell(f"with versions\n{LONG}")
    for number in range(14):
        await here.call("block.splice", block_id=cell, offset=0, insert=f"{number} ")
    async with opened(here, size=(40, 10)) as one:  # in which every page is too long
        await one.sees("line 89")
        for number in range(40):
            one.screen.hint(f"hint {number}")
        await one.press("up")
        yield one


async def show(there: Opened, modal: type[ModalScreen[Any]]) -> None:
    """Open a page, and wait until it shows what it has asked the kernel for."""
    while len(there.app.screen_stack) > 1:
        await there.app.pop_screen()
    COVERS[modal].show(there)
    await until(lambda: isinstance(there.app.screen, modal), "the page")
    page = there.app.screen
    match page:
        case history.HistoryModal():
            await until(lambda: page.step is not None, "the versions")
        case panels.Panel():
            await until(lambda: page.ids, "the entries")
        case picker.PickerModal():
            await there.sees("three")
    await screen_updated()


@pytest.mark.parametrize("modal", COVERS, ids=lambda one: one.__name__)
async def test_key_of_a_page_over_the_document_has_an_effect_or_a_hint(
    there: Opened, modal: type[ModalScreen[Any]]
) -> None:
    cover, silent = COVERS[modal], list[str]()
    await show(there, modal)
    keys = own_keys(there.app.screen) | own_keys(there.app.screen.focused)
    for key in ["f8", "ctrl+left_square_bracket", *sorted(keys & ENDS)]:
        for _ in range(2):
            if not await noticed(there, key):
                silent.append(f"{key} without a meaning or at an end")
    for key in [*sorted(keys - set(cover.last)), *cover.last]:
        await show(there, modal)
        there.burst(*cover.before.get(key, ()))
        await screen_updated()
        if not await noticed(there, key):
            silent.append(key)
    assert silent == []


async def test_key_for_a_choice_of_none_or_one_gets_a_hint(there: Opened) -> None:
    async def nothing(typed: str) -> list[picker.PickerEntry]:
        return [picker.PickerEntry("one", "the one")] if typed else []

    there.app.push_screen(picker.PickerModal("Choose", nothing))
    await there.sees("Nothing is found.")
    assert [key for key in ("down", "enter") if not await noticed(there, key)] == []
    await there.type("x")
    await there.sees("the one")
    assert await noticed(there, "down")


async def test_picker_without_a_hit_for_what_is_typed_says_so(there: Opened) -> None:
    async def nothing(typed: str) -> list[picker.PickerEntry]:
        return []

    there.app.push_screen(picker.PickerModal("Choose", nothing, empty="Type something."))
    await there.sees("Type something.")
    await there.type("x")
    await there.sees("Nothing is found.")


def test_every_page_over_the_document_has_its_keys_pressed() -> None:
    assert set(modal_classes()) == set(COVERS)
