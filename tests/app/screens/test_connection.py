from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from antiphon.actions import Mode
from antiphon.locations import state_folder
from antiphon.screens import conversation_controllers
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.app.opened import Opened, World, opened, through_proxy, world
from tests.waiting import PATIENCE, until


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the app wait for a silent kernel for moments."""
    monkeypatch.setattr("antiphon.session.SILENT_SECONDS", 0.2)
    monkeypatch.setattr("antiphon_kernel.client.replica.LAST_SECONDS", 0.1)
    monkeypatch.setattr("antiphon_kernel.client.connecting.CLOSE_SECONDS", 0.1)


async def test_header_names_the_context_left_last_and_how_the_kernel_is(here: World) -> None:
    await here.call("context.create", label="notes")
    async with opened(here, context="notes") as there:
        await there.press("ctrl+q")
    await here.close_doors()
    async with opened(here, live=False) as there:
        await there.sees("notes")
        await there.sees("offline")
        await here.open_doors()
        await there.sees("live")
        await there.sees("● you")


async def test_message_typed_before_any_kernel_answers_is_kept_or_sent_when_one_does(
    here: World,
) -> None:
    await here.close_doors()
    async with opened(here, live=False) as there:
        await there.type("typed too early")
        await there.press("ctrl+q")
        await there.hint("Ctrl+Q again")
        await there.press("ctrl+q")
        await until(lambda: not there.app.is_running, "the end")
    (kept,) = (state_folder() / "refused").glob("*.md")
    assert "typed too early" in kept.read_text()

    came_up = asyncio.Event()
    async with opened(here, live=False, has_kernel=came_up.is_set) as there:
        await there.type("typed at once")
        await there.sees("typed at once")
        assert there.shows("connecting")
        await here.open_doors()
        came_up.set()
        await there.live()
        await there.press("enter")
        await until(lambda: not there.message, "the message is sent")
    assert await here.texts(role="user") == ["typed at once"]


@pytest.mark.usefixtures("short_waits")
async def test_stopped_kernel_is_noticed_and_leaving_then_has_to_be_said_twice_and_keeps_text(
    here: World,
) -> None:
    async with through_proxy(here) as proxy, opened(here) as there:
        await there.cell("some text")
        proxy.stop()
        await there.sees("not answering")
        proxy.go_on()
        await until(lambda: not there.shows("not answering"), "it answers")
        assert there.app.session.is_live
        proxy.stop()
        await there.edit()
        await there.type("typed alone ")
        await there.sees("not answering")
        await there.press("ctrl+q")
        await there.hint("Ctrl+Q again")
        assert there.app.is_running
        await there.press("ctrl+q")
        await until(lambda: not there.app.is_running, "the end")
    (kept,) = (state_folder() / "refused").glob("*.md")
    assert "typed alone " in kept.read_text()


async def test_leaving_after_the_kernel_was_back_has_to_be_said_twice_again(here: World) -> None:
    await here.cell("some text")
    async with opened(here) as there:
        await there.edit()

        def has_warned(times: int) -> bool:
            hints = there.screen.controllers.hints
            return sum("Ctrl+Q again" in one.text for one in hints) == times

        for number in (1, 2):
            await here.close_doors()
            await there.sees("offline")
            await there.type("alone")
            await there.press("ctrl+q")
            await until(partial(has_warned, number), "a warning")
            assert there.app.is_running
            if number == 1:
                await here.open_doors()
                await there.live()
                await there.app.session.replica.saved()
        await there.press("ctrl+q")
        await until(lambda: not there.app.is_running, "the end")
    (kept,) = (state_folder() / "refused").glob("*.md")
    assert "alone" in kept.read_text()


async def test_connection_that_was_missed_is_told_to_be_back(
    here: World, there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_controllers, "NOTICED_SECONDS", 0.2)
    block = await there.cell("some text")
    await here.close_doors()
    await there.sees("offline")
    await there.edit()
    await there.type("more ")
    await there.sees("unsaved")
    await there.press("ctrl+z")
    await there.hint("Offline")
    await asyncio.sleep(conversation_controllers.NOTICED_SECONDS)
    await here.open_doors()
    await there.hint("Caught up")
    assert (await here.context()).document.text(block) == "more some text"


async def test_app_that_started_the_kernel_starts_it_again_and_says_why_it_cannot(
    here: World,
) -> None:
    loop = asyncio.get_running_loop()
    restarts: list[None] = []
    seen = asyncio.Event()

    async def open_when_seen() -> None:
        await seen.wait()
        await here.open_doors()

    def restart() -> None:
        restarts.append(None)
        if len(restarts) > 1:
            raise AntiphonError(ErrorCode.NO_KERNEL, "The kernel ended a second time.")
        asyncio.run_coroutine_threadsafe(open_when_seen(), loop).result(PATIENCE)

    async with opened(here, restart=restart) as there:
        await here.close_doors()
        await there.sees("starting the kernel")
        seen.set()
        await until(lambda: there.app.session.is_live, "live again")
        assert len(restarts) == 1
        await here.close_doors()
        await there.sees("The kernel ended a second time.")
        await there.sees("offline")
        await there.type("goes on")
        assert there.message == "goes on"


async def test_refused_edit_is_named_and_what_was_typed_beside_it_stays(here: World) -> None:
    block = await here.cell("some text")
    async with opened(here) as there:
        await there.sees("some text")
        document = there.app.session.document
        document.set_fields(block, status="error")
        document.splice(block, 0, 0, "more and ")
        await there.sees("live · refused: 1")
        await there.sees("more and some text")
        await there.hint("One edit was refused")
        await there.live()
        await there.palette("Show what was refused")
        await there.sees("permission_denied")
        refused = there.app.session.status.refused
        assert refused is not None
        assert "status" in refused.file.read_text()
        assert "".join(line[10:] for line in there.lines).count(refused.file.name) == 1
        await there.press("escape")
        await until(lambda: not there.shows("refused: 1"), "it has been read")
        await there.edit()
        await there.type("even ")
        kernels = (await here.context()).document
        await until(lambda: kernels.text(block) == "even more and some text", "typing goes on")


async def test_editor_typing_during_rejected_edit_continues_at_same_place(here: World) -> None:
    block = await here.cell("begin end")
    kernels = (await here.context()).document
    async with opened(here) as there:
        await there.sees("begin end")
        await there.edit()
        await there.press(*["right"] * 6)
        before = there.app.session.document
        before.set_fields(block, status="error")
        typed = "a long word "
        for letter in typed:
            there.burst(letter)
            await there.pilot.pause(0.005)
        await until(lambda: there.app.session.document is not before, "another document")
        await there.live()
        await until(
            lambda: there.app.session.document.text(block) == f"begin {typed}end",
            "every key is in the cell",
        )
        await there.mode(Mode.EDIT)
        await there.type("here ")
        await until(lambda: kernels.text(block) == f"begin {typed}here end", "it arrives")
        assert there.message == ""


async def test_deleted_journal_is_shown_and_the_key_that_finds_it_is_kept(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("some text")
        async with opened(here, size=(120, 30)) as there:
            await there.sees("some text")
            await there.edit()
            (here.data / "journal.db").unlink()
            await there.type("X")
            await there.sees("refused: Nothing more is saved")
            await there.sees("some text")
        (kept,) = (state_folder() / "refused").glob("*.md")
        assert "\n    X\n" in kept.read_text()


async def test_kernel_that_cannot_save_says_why_until_it_can(here: World) -> None:
    block = await here.cell("some text")
    full = "CREATE TRIGGER full BEFORE INSERT ON ops BEGIN SELECT raise(ABORT, 'no room'); END"
    async with opened(here) as there:
        await there.sees("some text")
        with closing(sqlite3.connect(here.data / "journal.db")) as rival:
            rival.execute(full)
        await there.edit()
        await there.type("more and ")
        await there.hint("no room")
        await there.sees("offline: ")
        assert not there.shows("starting the kernel")
        with closing(sqlite3.connect(here.data / "journal.db")) as rival:
            rival.execute("DROP TRIGGER full")
        await there.sees("live")
    assert (await here.context()).document.text(block) == "more and some text"


async def test_context_that_is_left_for_two_others_in_a_row_is_left(
    here: World, there: Opened
) -> None:
    for label in ("notes", "ideas"):
        await here.call("context.create", label=label)
    app, first = there.app, there.app.session
    choose = there.screen.open_context
    choose("notes")
    await until(lambda: app.session is not first, "the way to the one")
    choose("ideas")
    await until(lambda: app.session.document.label == "ideas", "the other")
    await until(lambda: not first.is_live, "nobody in the first context any more")


async def test_person_who_is_kicked_on_the_way_to_another_context_is_told(here: World) -> None:
    await here.call("context.create", label="notes")
    await here.cell("some text")
    async with through_proxy(here) as proxy, opened(here, as_name="vera") as there:
        await there.sees("some text")
        await there.edit()
        proxy.stop()
        await there.type("lost ")
        there.screen.open_context("notes")
        await here.call("kernel.kick", principal="vera")
        proxy.go_on()
        await there.sees("kicked")


@pytest.mark.usefixtures("short_waits")
async def test_edits_that_cannot_be_written_down_when_a_context_is_left_are_told(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await here.call("context.create", label="notes")
    block = await here.cell("some text")
    async with through_proxy(here) as proxy, opened(here) as there:
        await there.sees("some text")
        left = there.app.session

        async def write_when_all_is_saved() -> None:
            proxy.stop()
            left.document.splice(block, 0, 0, "lost ")

        monkeypatch.setattr(there.screen.contexts, "refresh", write_when_all_is_saved)
        (state_folder() / "refused").write_text("in the way")
        there.screen.open_context("notes")
        await there.hint("cannot be written")
