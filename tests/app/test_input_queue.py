"""Keys that arrive together do what they do one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from antiphon.actions import Mode
from antiphon.input_queue import InputQueue
from antiphon.screens import submitter
from antiphon.textual_patches.driver import InputPaused
from antiphon.widgets.status import HintBar
from antiphon_kernel.client.replica import Replica
from tests.app.opened import Opened, World, opened, world
from tests.app.widgets.composer.test_composer import in_kernel
from tests.waiting import until

TURNS = 40
"""Turns of the event loop; a key has been handled in fewer, however long they take."""


class Page(App[None]):
    """One text area."""

    def compose(self) -> ComposeResult:
        yield TextArea()


@pytest.mark.parametrize("is_held", [False, True])
async def test_key_at_the_moment_in_which_another_is_handled_is_not_left_waiting(
    is_held: bool,
) -> None:
    handed: list[str] = []

    async def hand_on(event: events.Event) -> None:
        assert isinstance(event, events.Key)
        handed.append(event.key)

    async with Page().run_test() as pilot:
        await until(lambda: pilot.app.focused is not None, "the text area has the focus")
        keys = InputQueue(pilot.app, hand_on)
        for turns in range(TURNS):
            handed.clear()
            await keys.put(events.Key("backspace", "\x7f"))
            if is_held:
                keys.pause()
            for _ in range(turns):
                await asyncio.sleep(0)
            await keys.put(events.Key("x", "x"))
            if is_held:
                keys.resume()
            await until(lambda: handed == ["backspace", "x"], f"both keys, {turns} turns apart")


async def test_key_that_was_begun_before_a_pause_counts_as_handled_when_it_is() -> None:
    is_begun, is_handed_on = asyncio.Event(), asyncio.Event()

    async def hand_on(_: events.Event) -> None:
        is_begun.set()
        await is_handed_on.wait()

    async with Page().run_test() as pilot:
        await until(lambda: pilot.app.focused is not None, "the text area has the focus")
        keys = InputQueue(pilot.app, hand_on)
        await keys.put(events.Key("backspace", "\x7f"))
        await is_begun.wait()
        keys.pause()
        waiting = asyncio.create_task(keys.caught_up())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert not waiting.done()
        is_handed_on.set()
        await waiting


async def test_burst_after_enter_becomes_the_next_message_at_the_tail_and_is_not_run(
    here: World, there: Opened
) -> None:
    await here.cell("line\n\n" * 100)
    await there.sees("line")
    await there.press("pageup", "pageup")
    await until(lambda: not there.screen.area.cells.following, "away from the tail")
    there.burst(*"hi", "enter", *"world")
    await in_kernel(here, "hi", is_draft=False)
    await until(lambda: there.screen.area.cells.following, "at the tail")
    await there.sees("│ hi")
    await until(lambda: there.message == "world", "the rest is there")
    await in_kernel(here, "world", is_draft=True)
    await there.press("ctrl+u")
    there.burst("!", *"echo", "enter", *"rm")
    await there.sees("$ echo")
    await until(lambda: there.message == "rm", "the rest is there")
    assert not there.shows("echorm")


async def test_keys_after_a_change_of_mode_are_of_the_new_mode(here: World, there: Opened) -> None:
    first = await here.cell("one")
    second = await there.cell("two")
    there.burst("up", "g", "enter", *"text", "escape", "j", "enter", *"more")
    document = (await here.context()).document
    await until(lambda: document.text(first) == "textone", "typed into the first")
    await until(lambda: document.text(second) == "moretwo", "typed into the second")
    assert there.message == ""
    there.burst("escape", "i", *"hi")
    await until(lambda: there.message == "hi", "typed into the message")
    assert there.screen.mode is Mode.WRITE
    block = await here.cell("first\n" + "line\n" * 60 + "last")
    await there.sees("last")
    there.burst("up", "G", "enter", "ctrl+end", "Z", "ctrl+home", "A", "ctrl+end", "Y")
    await until(lambda: document.text(block).endswith("lastZY"), "typed at the end of the cell")
    assert document.text(block).startswith("Afirst")
    await there.sees("lastZY")


async def test_keys_after_a_fork_wait_for_the_cells_of_the_fork(
    here: World, there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, run = await there.cell("one"), Replica.run

    async def run_later(replica: Replica) -> None:
        await asyncio.sleep(0.2)
        await run(replica)

    monkeypatch.setattr(Replica, "run", run_later)
    there.burst("up", "G", "F", "up", "G", "enter", *"now ")
    await there.sees("now one")
    assert (await here.context()).document.text(block) == "one"


async def test_message_without_models_shows_hint_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitter, "NOBODY_AFTER", 0.0)
    async with world(tmp_path, models=False) as here:
        await here.cell("not new any more")
        async with opened(here) as there:
            await until(lambda: there.screen.models.is_known, "the models")
            there.burst(*"hello", "enter")
            await there.sees("No model is set up")
            there.screen.query_one(HintBar).clear_hint()
            there.burst(*"again", "enter")
            await in_kernel(here, "again", is_draft=False)
            there.burst("@", *"nobody hello", "enter")
            await there.sees("Nobody is called nobody.")
            assert sum("No model" in one.text for one in there.screen.controllers.hints) == 1


async def test_input_goes_on_when_every_key_of_a_burst_is_handled_and_message_is_shown_whole(
    here: World,
) -> None:
    async with opened(here, size=(40, 24)) as there:
        there.burst("A", *"b" * 85, "Z")
        await until(lambda: there.screen.composer.size.height > 2, "it has grown")
        await until(lambda: there.shows("› Abb") and there.shows("bZ"), "all of it")
        there.screen.composer.draft.clear()
        handled: list[str] = []
        there.burst("up", "i", *"word" * 6)
        there.app.post_message(InputPaused(lambda: handled.append(there.message)))
        await until(lambda: handled, "the terminal is read on")
        assert handled == ["word" * 6]
