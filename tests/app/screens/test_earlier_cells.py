"""A long context begins with its last cells; earlier ones come before they are looked at."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from antiphon import session
from antiphon.actions import Mode
from antiphon.input_queue import InputQueue
from antiphon.screens import document_screen
from antiphon.screens.document_actions import EARLIER_OFFLINE
from tests.app.opened import Opened, World, opened
from tests.waiting import until

ALL = 80
RECENT = 30


@pytest.fixture(autouse=True)
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "RECENT_BLOCKS", RECENT)
    monkeypatch.setattr(document_screen, "CELLS_ABOVE", 5)


@pytest.fixture
async def cells(here: World) -> list[str]:
    return [await here.cell(f"cell {number}") for number in range(ALL)]


@pytest.fixture
async def recent(here: World, cells: list[str]) -> AsyncIterator[Opened]:
    """The app with the last cells only."""
    async with opened(here) as there:
        await there.sees(f"cell {ALL - 1}")
        assert there.app.session.omitted == ALL - RECENT
        first = there.screen
        yield there
        if there.app.is_running and there.screen is not first:
            # Textual cannot end while a screen is being taken away.
            await until(lambda: not first.is_running, "the first screen has gone")


def page(there: Opened) -> list[str]:
    """The cells on the screen."""
    return re.findall(r"cell \d+", "\n".join(there.lines))


async def test_long_context_begins_with_its_last_cells(recent: Opened, cells: list[str]) -> None:
    assert list(recent.screen.source.ids()) == cells[-RECENT:]


async def test_scrolling_up_reads_earlier_cells_until_the_first(recent: Opened) -> None:
    await recent.press("escape")
    for _ in range(ALL):
        await recent.press("pageup")
        if recent.shows("cell 0 "):
            break
    await until(lambda: recent.shows("cell 0 ") or recent.app.session.omitted > 0)
    await recent.press("g")
    await recent.sees("cell 0 ")
    assert not recent.app.session.omitted


async def test_page_stays_when_earlier_cells_come(recent: Opened) -> None:
    await recent.press("escape")
    await recent.press("pageup")
    before, screen = page(recent), recent.screen
    await recent.app.session.read_earlier(ALL)
    await until(lambda: recent.screen is not screen, "another screen")
    await until(lambda: page(recent) == before, lambda: f"{before} {page(recent)}")
    await recent.mode(Mode.NAVIGATE)


async def test_first_cell_is_gone_to_when_it_has_come(recent: Opened) -> None:
    await recent.press("escape")
    await recent.press("g")
    await recent.sees("cell 0 ")
    await until(lambda: recent.screen.cells.focused_cell == recent.screen.source.ids()[0])


async def test_person_who_went_on_is_not_taken_to_the_first_cell(recent: Opened) -> None:
    await recent.press("escape")
    recent.burst("g", "G")
    await until(lambda: not recent.app.session.omitted)
    await recent.sees(f"cell {ALL - 1}")


async def test_message_and_folds_stay_when_earlier_cells_come(
    recent: Opened, cells: list[str]
) -> None:
    await recent.type("half a message")
    recent.screen.source.set_folded([cells[-1]], True)
    screen = recent.screen
    await recent.app.session.read_earlier(ALL)
    await until(lambda: recent.screen is not screen, "another screen")
    await until(lambda: recent.message == "half a message", "the message is there")
    await recent.type("!")
    await until(lambda: recent.message == "half a message!", "it can be written on")
    assert recent.screen.source.is_folded(cells[-1])


async def test_cell_that_is_edited_stays_so_when_earlier_cells_come(
    recent: Opened, cells: list[str], here: World
) -> None:
    await recent.edit()
    await recent.type("one ")
    screen = recent.screen
    await recent.app.session.read_earlier(ALL)
    await until(lambda: recent.screen is not screen, "another screen")
    await until(lambda: recent.screen.mode is Mode.EDIT, "it is edited")
    await recent.type("two ")
    document = (await here.context()).document
    await until(lambda: document.text(cells[-1]) == f"one two cell {ALL - 1}")


async def test_find_searches_the_cells_that_come_for_it(recent: Opened) -> None:
    await recent.press("escape")
    await recent.press("/")
    recent.burst(*"cell", "space", "1")
    await recent.sees("of 11")
    assert not recent.app.session.omitted
    assert recent.screen.mode is Mode.FIND
    await recent.press("escape")
    await recent.mode(Mode.NAVIGATE)


async def test_find_from_the_message_goes_back_to_it_when_cells_have_come(recent: Opened) -> None:
    await recent.type("half")
    screen = recent.screen
    await recent.press("ctrl+f")
    await until(lambda: recent.screen is not screen, "another screen")
    await recent.mode(Mode.FIND)
    await recent.type("cell 2")
    await recent.sees("of 11")
    await recent.press("escape")
    await recent.type(" a word")
    await until(lambda: recent.message == "half a word")


async def test_cells_are_counted_from_the_first_of_the_context(recent: Opened) -> None:
    await recent.press("escape")
    await recent.press("f2")
    await recent.sees(f"¶{ALL}")


async def test_context_that_was_left_at_an_earlier_cell_opens_there(
    here: World, cells: list[str]
) -> None:
    async with opened(here) as before:
        await before.press("escape")
        await before.press("g")
        await before.sees("cell 0 ")
        before.screen.cells.focus_cell(cells[12])
        await before.sees("cell 12 ")
    async with opened(here) as again:
        await again.sees("cell 12 ")


async def test_offline_first_cell_says_when_it_comes(here: World, recent: Opened) -> None:
    await recent.press("escape")
    await here.close_doors()
    await until(lambda: not recent.app.session.is_live)
    await recent.press("g")
    await until(lambda: recent.screen.hint_shown == EARLIER_OFFLINE, "a hint")


async def test_cell_is_edited_after_two_documents_have_come_at_once(
    recent: Opened, cells: list[str], here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recent.app.session.document

    async def both_are_here(_: InputQueue) -> None:
        await until(lambda: not recent.app.session.omitted)

    monkeypatch.setattr(InputQueue, "caught_up", both_are_here)
    await recent.app.session.read_earlier(RECENT + 1)
    await until(lambda: recent.app.session.document is not before)
    await recent.app.session.read_earlier(ALL)
    await until(lambda: len(recent.screen.source.ids()) == ALL)
    monkeypatch.undo()
    await recent.edit()
    await recent.type("mine ")
    document = (await here.context()).document
    await until(lambda: document.text(cells[-1]) == f"mine cell {ALL - 1}")


async def test_keys_that_come_late_to_the_old_document_are_taken_in_the_new_one(
    recent: Opened, cells: list[str], here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recent.edit()
    await recent.type("one two")
    screen, editor = recent.screen, recent.screen.area.editor
    assert editor is not None
    theirs = f"Look: one twocell {ALL - 1}"

    async def keys_come(_queue: InputQueue) -> None:
        await here.call(
            "block.splice", block_id=cells[-1], offset=0, delete_count=0, insert="Look: "
        )
        await until(lambda: recent.app.session.document.text(cells[-1]) == theirs)
        editor.insert("x")
        for _ in range(3):
            editor.action_delete_left()

    monkeypatch.setattr(InputQueue, "caught_up", keys_come)
    await recent.app.session.read_earlier(ALL)
    await until(lambda: recent.screen is not screen, "another screen")
    await recent.mode(Mode.EDIT)
    monkeypatch.undo()
    await recent.type("en ")
    document = (await here.context()).document
    text = f"Look: one ten cell {ALL - 1}"
    await until(lambda: document.text(cells[-1]) == text, lambda: document.text(cells[-1]))


async def test_keys_are_taken_when_a_context_is_left_as_earlier_cells_come(
    recent: Opened, here: World
) -> None:
    await here.call("context.create", label="other")
    left = recent.app.session
    left.replica.on_document_replaced(
        lambda: recent.app._open_context("other")  # noqa: SLF001  in the same moment
    )
    await left.read_earlier(ALL)
    await until(lambda: recent.app.session is not left, "another session")
    await recent.live()
    recent.burst("a")
    await until(lambda: recent.message == "a", "the key is taken")
