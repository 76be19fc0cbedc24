"""Every key, of the list in each mode and of what stands over the document, does something."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from textual.command import CommandPalette
from textual.events import Paste
from textual.screen import ModalScreen, Screen
from textual.strip import Strip

from antiphon.actions import ACTIONS, Mode, Owner, shown_key
from antiphon.screens import (
    conflicts,
    drift_pages,
    file_part,
    history,
    modals,
    panels,
    picker,
    reading,
)
from antiphon.widgets.status import HintBar
from antiphon_kernel.text.patch import unified_diff
from tests.app.opened import Opened, World, opened
from tests.app.screens.key_effects import appearance, noticed, own_keys
from tests.waiting import screen_updated, until

LEAVE: Final = {"quit"}
"""Ends the app, which other tests have."""

ALIKE: Final = frozenset(
    {
        *("contexts", "files", "help", "interrupt", "other_page", "palette", "people"),
        "to_writer",
    }
)
"""Actions that do the same in every mode, among cells or none: their keys are pressed in one."""


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


def keys_of(mode: Mode) -> dict[str, None]:
    """Return the keys of a mode, in the order of their actions."""
    fitting = [one for one in ACTIONS if mode in one.modes and one.owner is not Owner.REPLAY]
    return dict.fromkeys(key for one in fitting for key in one.keys if one.name not in LEAVE)


def action_of(there: Opened, key: str) -> str:
    """Return what the app does at a key now; the key itself if it is only a sign."""
    bound = there.app.screen.active_bindings.get(key)
    return key if bound is None else bound.binding.action


async def silent_keys(there: Opened, modes: Iterable[Mode], known: Iterable[str] = ()) -> list[str]:
    """Press a key of each action that is not `known`; return those after which nothing differed."""
    silent, met = list[str](), set(known)
    for mode in modes:
        met &= ALIKE
        for key in keys_of(mode):
            await enter(there, mode)
            action = action_of(there, key)
            if action not in met and not await noticed(there, key):
                silent.append(f"{mode.value} {key}: {action}")
            met.add(action)
    return silent


async def test_key_among_cells_has_an_effect_or_a_hint(here: World) -> None:
    for number in range(6):
        await here.cell(f"# Cell {number}\n\nwith some text\n\nand more")
    await here.cell("much\n\nthought", kind="thinking")
    async with opened(here, size=(60, 16)) as there:
        await there.sees("Cell 5")
        assert await silent_keys(there, Mode) == []


async def test_key_in_an_empty_context_has_an_effect_or_a_hint(here: World) -> None:
    async with opened(here, size=(60, 16)) as there:
        assert await silent_keys(there, [Mode.NAVIGATE, Mode.WRITE], ALIKE) == []


async def one(typed: str) -> list[picker.PickerEntry]:
    return [picker.PickerEntry("one", "the one")] if typed == "x" else []


async def test_key_or_paste_that_means_nothing_among_the_cells_or_to_a_choice_says_so(
    there: Opened,
) -> None:
    await enter(there, Mode.NAVIGATE)
    for key in ("q", "c", "8", "f9", "ctrl+x"):
        there.burst(key)
        await there.sees(f"{shown_key(key)} does nothing here")
    there.app.post_message(Paste("text"))
    await there.sees("Nothing is pasted here")
    # A key without a meaning in a text is told from one with an effect.
    there.screen.frame.notice.clear_hint()
    await enter(there, Mode.WRITE)
    await there.sees("live")
    before = None
    while before != (now := appearance(there)):
        before = now
        await there.pilot.pause(0.2)
    assert not await noticed(there, "f9", seconds=0.5)

    there.app.push_screen(picker.PickerModal("Choose", one, empty="Type something."))
    await there.sees("Type something.")
    assert [key for key in ("down", "enter") if not await noticed(there, key)] == []
    await there.type("x")
    await there.sees("the one")
    assert await noticed(there, "down")
    await there.type("y")
    await there.sees("Nothing is found.")


LONG: Final = "\n".join(f"line {number}" for number in range(30))


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

MEANINGLESS: Final = "f9"

PREVIEW: Final = {
    "source_label": "tidy",
    "target_label": "default",
    "plan": "p",
    "conflicts": 2,
    "changes": [
        {
            "block_id": "b",
            "name": "default.amy.1",
            "source_block": "s",
            "before": LONG,
            "after": LONG,
            "conflicts": [
                {"number": n, "base": "", "ours": "line", "theirs": "x", "start": n, "end": n + 4}
                for n in (0, 5)
            ],
        }
    ],
    "offers": [],
}

PART: Final = {"path": "a.log", "size": 10**6, "start": 0, "end": len(LONG), "text": LONG}

COVERS: Final[Mapping[type[ModalScreen[Any]], Cover]] = {
    modals.TextModal: Cover(lambda there: there.screen.call_action("help"), SCROLLED),
    modals.ConfirmModal: Cover(pushing(lambda there: modals.ConfirmModal("Really?"))),
    modals.KeyModal: Cover(pushing(lambda there: modals.KeyModal("word " * 200)), SCROLLED),
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
    conflicts.FileConflictsModal: Cover(
        pushing(
            lambda there: conflicts.FileConflictsModal(
                there.screen.controllers.scope,
                "a.py",
                [{"start": 1, "ours": LONG, "theirs": LONG}] * 2,
            )
        ),
        {**SCROLLED, **dict.fromkeys(("p", "left_square_bracket"), ("n",))},
    ),
    file_part.FilePartModal: Cover(
        pushing(lambda there: file_part.FilePartModal(there.app.session, PART, "It is long.")),
        SCROLLED,
    ),
    drift_pages.MergeModal: Cover(
        pushing(lambda there: drift_pages.MergeModal(PREVIEW)),
        {**SCROLLED, **dict.fromkeys(("p", "left_square_bracket"), ("n",))},
    ),
    drift_pages.EditModal: Cover(pushing(lambda there: drift_pages.EditModal(LONG))),
    drift_pages.CellsModal: Cover(
        pushing(lambda there: drift_pages.CellsModal("push", dict.fromkeys("abc", "word"), "b"))
    ),
    drift_pages.DifferenceModal: Cover(
        pushing(lambda there: drift_pages.DifferenceModal(unified_diff("", LONG, "a"), "write it")),
        SCROLLED,
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
async def covered(here: World) -> AsyncIterator[Opened]:
    """The app in NAVIGATE, at a cell of many versions, with past hints and another context."""
    await here.call("context.create", label="other")
    for number in range(9):
        await here.cell(f"Cell {number}\n\nand more")
    cell = await here.cell(f"with versions\n{LONG}")
    for number in range(9):
        await here.call("block.splice", block_id=cell, offset=0, insert=f"{number} ")
    async with opened(here, size=(40, 10)) as one:  # in which every page is too long
        await one.sees("line 29")
        for number in range(9):
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


async def show_again(
    there: Opened, modal: type[ModalScreen[Any]], page: Screen[Any], rows: list[Strip]
) -> None:
    """Go back to how a page was when it was opened; open it anew only if that does not do."""
    if there.app.screen is page:
        for bar in page.query(HintBar):
            bar.clear_hint()
        if "g" in own_keys(page.focused):
            there.burst("g")
        await screen_updated()
        if there.rows == rows:
            return
    await show(there, modal)


Met = set[tuple[type[object], str]]
"""Classes of pages and of what has the focus on them, with actions of theirs."""


async def silent_keys_of_page(there: Opened, modal: type[ModalScreen[Any]], met: Met) -> list[str]:
    """Press a key of each action of a page that is not `met`; return those that changed nothing."""
    cover = COVERS[modal]
    await show(there, modal)
    page, rows = there.app.screen, there.rows
    keys, bound = own_keys(page) | own_keys(page.focused), page.active_bindings
    silent = list[str]()
    for key in [*sorted(keys - set(cover.last)), MEANINGLESS, *cover.last]:
        if key in bound:
            place = type(bound[key].node), bound[key].binding.action
            if place in met:
                continue
            met.add(place)
        await show_again(there, modal, page, rows)
        page = there.app.screen
        there.burst(*cover.before.get(key, ()))
        await screen_updated()
        presses = 2 if key in ENDS else 1
        if not all([await noticed(there, key) for _ in range(presses)]):
            silent.append(key)
    return silent


LAST: Final = [modal for modal, cover in COVERS.items() if cover.last]
FIRST: Final = [modal for modal in COVERS if modal not in LAST]


@pytest.mark.parametrize("pages", [[*FIRST, *LAST[:1]], LAST[1:]])
async def test_key_of_a_page_over_the_document_has_an_effect_or_a_hint(
    covered: Opened, pages: list[type[ModalScreen[Any]]]
) -> None:
    met = Met()
    silent = {one: await silent_keys_of_page(covered, one, met) for one in pages}
    assert not any(silent.values()), silent


def test_every_page_over_the_document_has_its_keys_pressed() -> None:
    assert set(modal_classes()) == set(COVERS)
