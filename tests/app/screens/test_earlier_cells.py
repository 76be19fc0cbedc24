"""A long context begins with its last cells; earlier ones come before they are looked at."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.await_complete import AwaitComplete
from textual.widgets import Input

from antiphon import session
from antiphon.actions import Mode
from antiphon.input_queue import InputQueue
from antiphon.screens import cell_list
from antiphon.screens.cell_list import EARLIER_OFFLINE
from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.contexts.opening import page as pages
from antiphon_kernel.types.enums import Status
from tests.app.opened import Opened, World, opened, world
from tests.waiting import until

ALL = 70
RECENT = 26


@pytest.fixture(autouse=True)
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "RECENT_BLOCKS", RECENT)
    monkeypatch.setattr(cell_list, "CELLS_ABOVE", 5)


@pytest.fixture
async def cells(here: World) -> list[str]:
    return [await here.cell(f"cell {number}") for number in range(ALL)]


@pytest.fixture
async def recent(here: World, cells: list[str]) -> AsyncIterator[Opened]:
    """The app with the last cells only."""
    async with opened(here) as there:
        await there.sees(f"cell {ALL - 1}")
        assert there.app.session.replica.omitted == ALL - RECENT
        yield there


async def replaced(there: Opened, before: object) -> None:
    await until(lambda: there.screen is not before, "another screen")


async def read_more(there: Opened) -> None:
    """Read one more cell, and wait for the screen that shows it."""
    screen, replica = there.screen, there.app.session.replica
    await replica.read_earlier(len(replica.document) + 1)
    await replaced(there, screen)


def page(there: Opened) -> list[str]:
    """The cells on the screen."""
    return re.findall(r"cell \d+", "\n".join(there.lines))


async def test_cells_are_counted_from_the_first_and_come_by_scrolling_up_and_by_going_there(
    recent: Opened,
) -> None:
    replica, before = recent.app.session.replica, recent.screen

    def seen() -> str | None:
        me = recent.app.session.replica.awareness.me
        return None if me is None else me.block

    await recent.press("escape", "f2")
    await recent.sees(f"¶{ALL}")
    await recent.press("f2", mode=Mode.NAVIGATE)
    await recent.press_until("pageup", lambda: replica.omitted < ALL - RECENT)
    await recent.press("g")
    await recent.sees("cell 0 ")
    assert not replica.omitted
    first = recent.screen.source.ids()[0]
    await until(lambda: recent.screen.cells.focused_cell == first)
    await until(lambda: seen() == first)
    # The screen of the document before says nothing of where the person is.
    before.following.publish()
    await recent.pilot.pause(0.2)
    assert seen() == first


async def test_page_message_folds_and_a_cell_in_hand_stay_when_earlier_cells_come(
    recent: Opened, cells: list[str], here: World
) -> None:
    document = (await here.context()).document
    await recent.type("half a message")
    recent.screen.source.set_folded([cells[-2]], True)
    await read_more(recent)
    await until(lambda: recent.message == "half a message", "the message is there")
    await recent.type("!")
    await until(lambda: recent.message == "half a message!", "it can be written on")
    assert recent.screen.source.is_folded(cells[-2])
    await recent.press("escape", "pageup")
    before = page(recent)
    await read_more(recent)
    await until(lambda: page(recent) == before, lambda: f"{before} {page(recent)}")
    await recent.mode(Mode.NAVIGATE)

    await recent.press("G", "enter", mode=Mode.EDIT)
    await recent.type("one ")
    await read_more(recent)
    await until(lambda: recent.screen.mode is Mode.EDIT, "it is edited")
    await recent.type("two ")
    await until(lambda: document.text(cells[-1]) == f"one two cell {ALL - 1}")
    await recent.press("escape", "m", "k", "k", "k")
    await read_more(recent)
    await until(lambda: recent.screen.situation.moving, "it is moved")
    await recent.press("enter")
    await until(lambda: document.order.index(cells[-1]) == ALL - 4)


async def test_what_stands_over_the_document_goes_on_when_earlier_cells_come(
    recent: Opened, cells: list[str], here: World
) -> None:
    await recent.press("escape")
    for keys in (("f1",), ("ctrl+p",), ("f4", "n")):
        await recent.press(*keys)
        await recent.type("th")
        covers = recent.app.screen_stack[1:]
        await read_more(recent)
        await recent.type("eme")
        assert covers and recent.app.screen_stack[1:] == covers
        assert all(one.value == "theme" for one in recent.app.screen.query(Input))
        await recent.press(*("escape" for _ in covers))
        await until(lambda: recent.app.screen is recent.screen, "the document")

    await recent.press("U")
    await recent.sees("Take back")
    await read_more(recent)
    assert recent.shows("Take back")
    await recent.press("y")
    document = (await here.context()).document
    await until(lambda: not document.text(cells[-1]), "taken back")
    await recent.hint("Took back")

    await recent.press("i", mode=Mode.WRITE)
    await recent.send("my message")
    await was_sent(here, "my message")
    await recent.press("up", mode=Mode.NAVIGATE)
    await recent.press("G")
    await until(lambda: recent.screen.situation.own_message, "the message is chosen")
    recent.screen.call_action("send_again")
    await read_more(recent)
    await until(lambda: recent.screen.situation.revising, "it is edited")
    assert recent.message == "my message"


async def test_person_who_went_on_is_not_taken_to_the_first_cell(recent: Opened) -> None:
    await recent.press("escape")
    recent.burst("g", "G")
    await until(lambda: not recent.app.session.replica.omitted)
    await recent.sees(f"cell {ALL - 1}")


async def test_replaced_screen_bears_a_person_in_a_cell_of_the_next_one_and_the_end_of_the_app(
    cells: list[str], here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = here.kernel.open_session(await here.kernel.principal("bo"), "test")
    WriterPresence(await here.context(), actor, 99).write_in(cells[ALL - RECENT - 1])
    async with opened(here, size=(140, 40)) as there:
        screen, replica = there.screen, there.app.session.replica
        unseen = cells[ALL - RECENT - 1]
        await until(lambda: any(one.block == unseen for one in screen.people.participants()))
        await replica.read_earlier(RECENT + 1)
        await until(lambda: there.app.session.document is not screen.source.document)
        screen.set_focus(None)
        await replaced(there, screen)
        await until(lambda: not screen.is_attached, "the screen before is gone")

        removed, remove_mode = there.screen, there.app.remove_mode

        def remove_and_exit(mode: str) -> AwaitComplete:
            there.app.call_later(there.app.exit)
            return remove_mode(mode)

        monkeypatch.setattr(there.app, "remove_mode", remove_and_exit)
        await replica.read_earlier(ALL)
        await until(lambda: not there.app.is_running, "the end of the app")
        assert removed.parent is None


async def test_file_in_front_is_edited_on_when_earlier_cells_of_the_conversation_come(
    recent: Opened, here: World
) -> None:
    (here.folder / "a.txt").write_text("text")
    await recent.pilot.resize_terminal(170, 24)
    await recent.type("half")
    recent.app.context.open_file("a.txt")
    await until(lambda: recent.screen.source.is_file and recent.screen.view.is_restored, "a file")
    await recent.live()
    await recent.press("enter", mode=Mode.EDIT)
    await recent.type("one ")
    context, file = recent.app.context, recent.screen
    before = context.screen
    await context.session.replica.read_earlier(2 * ALL)
    await until(lambda: context.screen is not before, "another screen")
    await until(lambda: not before.is_attached, "the screen before is gone")
    await recent.type("two ")
    await recent.sees("one two text")
    assert recent.screen is file is recent.app.screen
    await recent.press("f7")
    await recent.type(" done")
    assert recent.message == "half done"
    await recent.sees(f"cell {ALL - 1}")


async def test_find_searches_the_cells_that_come_for_it_and_goes_back_to_the_message(
    recent: Opened,
) -> None:
    await recent.type("half")
    await recent.press("ctrl+f")
    recent.burst(*"cell", "space", "2")
    await recent.sees("of 11")
    assert not recent.app.session.replica.omitted
    assert recent.screen.mode is Mode.FIND
    await recent.press("escape")
    await recent.type(" a word")
    await until(lambda: recent.message == "half a word")


async def test_cell_cut_out_before_the_last_is_brought_back_and_a_context_opens_where_it_was_left(
    here: World, cells: list[str]
) -> None:
    await here.call("block.exclude", block_id=cells[3], excluded=True, cut_out=True)
    async with opened(here) as before:
        await before.sees(f"cell {ALL - 1}")
        await before.press("up")
        await before.palette("Bring back a cell")
        await before.sees("¶4 · bela")
        await before.press("enter")
        document = (await here.context()).document
        await until(lambda: not document.header(cells[3]).excluded)
        await before.press("g")
        await before.sees("cell 0 ")
        before.screen.cells.focus_cell(cells[12])
        await before.sees("cell 12 ")
    async with opened(here) as again:
        await again.sees("cell 12 ")


async def test_keys_that_come_late_to_the_old_document_are_taken_in_the_last_of_the_next(
    recent: Opened, cells: list[str], here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recent.edit()
    await recent.type("one two")
    screen, editor, replica = recent.screen, recent.screen.area.editor, recent.app.session.replica
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
    await replica.read_earlier(RECENT + 1)
    await replaced(recent, screen)
    await recent.mode(Mode.EDIT)
    await recent.type("en ")
    document = (await here.context()).document
    text = f"Look: one ten cell {ALL - 1}"
    await until(lambda: document.text(cells[-1]) == text, lambda: document.text(cells[-1]))

    async def both_are_here(_: InputQueue) -> None:
        await until(lambda: not replica.omitted)

    before = recent.app.session.document
    monkeypatch.setattr(InputQueue, "caught_up", both_are_here)
    await replica.read_earlier(RECENT + 2)
    await until(lambda: recent.app.session.document is not before)
    await replica.read_earlier(ALL)
    await until(lambda: len(recent.screen.source.ids()) == ALL)
    monkeypatch.undo()
    await recent.mode(Mode.EDIT)
    await recent.type("mine ")
    await until(lambda: "mine " in document.text(cells[-1]))


async def test_keys_are_taken_when_a_context_is_left_as_earlier_cells_come(
    recent: Opened, here: World
) -> None:
    await here.call("context.create", label="other")
    left = recent.app.session
    left.replica.document_replaced.listen(
        lambda: recent.app.context.open("other")  # in the same moment
    )
    await left.replica.read_earlier(ALL)
    await until(lambda: recent.app.session is not left, "another session")
    await recent.live()
    recent.burst("a")
    await until(lambda: recent.message == "a", "the key is taken")


async def was_sent(here: World, message: str) -> None:
    """Wait until the kernel has a message and knows that it is sent."""
    document = (await here.context()).document

    def is_sent() -> bool:
        return any(
            document.text(block) == message and document.header(block).status is Status.DONE
            for block in document.block_ids()
        )

    await until(is_sent, message)


async def test_offline_first_cell_says_when_it_comes_and_a_message_is_sent_to_the_next_document(
    recent: Opened, here: World, cells: list[str]
) -> None:
    screen = recent.screen
    await here.close_doors()
    await until(lambda: not recent.app.session.is_live)
    await recent.press("escape", "g")
    await until(lambda: recent.screen.frame.notice.hint == EARLIER_OFFLINE, "a hint")
    await recent.press("i", mode=Mode.WRITE)
    await recent.send("hello there")
    await recent.sees("Will be sent")
    await here.call("block.move", block_id=cells[0], after=cells[1])
    await here.open_doors()
    await replaced(recent, screen)
    await was_sent(here, "hello there")
    await until(lambda: not recent.message, "the composer is empty")


async def test_message_that_is_sent_as_earlier_cells_come_is_sent_once(
    recent: Opened, here: World, cells: list[str]
) -> None:
    for number in range(2):
        screen, message = recent.screen, f"message {number}"
        await recent.type(message)
        await here.call("block.move", block_id=cells[number], after=cells[number + 3])
        await recent.press("enter")
        await replaced(recent, screen)
        await was_sent(here, message)
        await until(lambda: not recent.message, "the composer is empty")
        await recent.mode(Mode.WRITE)


async def test_person_among_earlier_cells_is_followed_and_points_at_a_line(
    cells: list[str], here: World
) -> None:
    async with opened(here, as_name="bela") as guest:
        async with opened(here) as there:
            await there.sees(f"cell {ALL - 1}")
            await until(there.app.session.presence, "she is known")
            await there.press("up", "f")
            await there.sees("FOLLOWING bela")
            await guest.press("up", "g")
            await guest.sees("cell 0 ")
            await there.sees("cell 0 ")
            await there.sees("FOLLOWING bela")
            await there.press("G")
            await there.sees(f"cell {ALL - 1}")
        async with opened(here) as there:
            await there.sees(f"cell {ALL - 1}")
            assert there.app.session.replica.omitted
            guest.screen.call_action("point")
            await there.sees("bela points at a line out of sight")
            there.screen.call_action("to_writer")
            await there.sees("cell 0 ")


async def test_call_that_waits_is_told_of_however_old_and_when_earlier_cells_have_come(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, asks=True) as here:
        for number in range(RECENT):
            await here.cell(f"cell {number}")
        await here.call("block.create", role="user", kind="text", content="Go", status="done")
        here.aria.run("touch ran")
        document = (await here.context()).document
        await until(lambda: len(document.block_ids()) > RECENT + 1, "the call")
        for number in range(RECENT):
            await here.cell(f"more {number}")
        async with opened(here) as there:
            await there.sees("aria asks")
            assert there.app.session.replica.omitted
            await read_more(there)
            await there.sees("aria asks")
            assert there.screen.situation.waiting


async def test_context_that_was_left_far_above_opens_there(
    here: World, cells: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BLOCKS", 4)
    async with opened(here) as there:
        await there.press("escape", "g")
        await there.sees("cell 0 ")
        there.screen.cells.focus_cell(cells[30])
        await there.pilot.pause()
        before = page(there)
        await there.press("ctrl+q")
    assert "cell 30" in before
    async with opened(here) as there:
        await until(lambda: page(there) == before, lambda: f"{before} {page(there)}")
        assert there.screen.cells.focused_cell == cells[30]
