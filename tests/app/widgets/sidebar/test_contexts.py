"""The other contexts of the kernel: listed, opened, and where one was in each."""

from __future__ import annotations

from pathlib import Path

from antiphon.locations import state_folder
from antiphon.modes import Mode
from tests.app.opened import Opened, World, opened, world
from tests.waiting import until


async def a_context(here: World, label: str, *contents: str) -> str:
    created = await here.call("context.create", label=label)
    for content in contents:
        new = {"role": "user", "kind": "text", "status": "done", "content": content}
        await here.call("block.create", context=created["context_id"], **new)
    return str(created["context_id"])


async def open_second(there: Opened, label: str) -> None:
    """From the sidebar: the context below the first."""
    await there.live()
    await there.press("f2")
    await there.mode(Mode.CONTEXTS)
    await there.sees(label)
    await there.press("down", "enter")
    await until(lambda: there.app.session.document.label == label, label)
    await there.live()


async def test_enter_in_the_sidebar_opens_a_context_and_drafts_stay_in_theirs(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here, opened(here, size=(120, 40)) as there:
        await a_context(here, "notes", "Buy milk")
        await there.live()
        await there.type("half a thought")
        await open_second(there, "notes")
        await there.sees("Buy milk")
        await there.mode(Mode.WRITE)
        assert there.message == ""
        await there.press("f2", "up", "enter")
        await until(lambda: there.app.session.document.label == "default", "back")
        await until(lambda: there.message == "half a thought", "the draft")


async def test_esc_leaves_the_sidebar_and_f2_puts_it_away(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here, size=(80, 24)) as there:
        await there.live()
        await there.press("f2")
        await there.sees("contexts")
        await there.press("escape")
        await there.mode(Mode.WRITE)
        assert there.shows("contexts")
        await there.press("f2", "f2")
        await until(lambda: not there.shows("contexts"), "put away")
        await there.mode(Mode.WRITE)


async def test_a_renamed_context_is_named_anew_and_an_archived_one_only_while_it_is_open(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here, opened(here, size=(120, 40)) as there:
        notes = await a_context(here, "notes")
        await there.live()
        await here.call("context.rename", context=notes, label="plans")
        await open_second(there, "plans")
        await here.call("context.rename", context=notes, label="dreams")
        await there.sees("dreams")
        await here.call("context.archive", context=notes)
        await there.press("f2")
        await there.sees("dreams · archived")
        await there.press("up", "enter")
        await until(lambda: there.app.session.document.label == "default", "back")
        await there.live()
        await there.sees("▸ default")
        await until(lambda: not there.shows("dreams"), "gone")


async def test_the_app_opens_where_it_was_left(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await a_context(here, "notes", *(f"Note {number}" for number in range(60)))
        async with opened(here, size=(80, 24)) as there:
            await open_second(there, "notes")
            await there.press("up", "g")
            await there.press(*["down"] * 30)
            await there.sees("Note 30")
            left = [line[:79].rstrip() for line in there.lines[1:-3]]
        async with opened(here, size=(80, 24)) as there:
            await there.live()
            await there.sees("Note 30")
            assert [line[:79].rstrip() for line in there.lines[1:-3]] == left
            assert not there.screen.area.cells.following


async def test_what_is_remembered_and_cannot_be_read_is_told_and_stops_nothing(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        async with opened(here) as there:
            await there.live()
        [file] = (state_folder() / "places").iterdir()
        file.write_text("{")
        async with opened(here) as there:
            await there.live()
            await there.sees("Where you are cannot be remembered")
