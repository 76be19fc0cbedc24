"""Drafts that nobody else sees."""

from __future__ import annotations

from textual.events import Paste

from antiphon.locations import state_folder
from tests.app.opened import Opened, World, opened
from tests.waiting import until


async def stored(here: World) -> bytes:
    """Return everything that the kernel has on disk."""
    return b"".join(one.read_bytes() for one in here.data.glob("journal.db*"))


async def test_private_draft_reaches_the_kernel_only_when_it_is_sent(
    here: World, there: Opened
) -> None:
    await there.press("ctrl+t")
    await there.sees("PRIVATE")
    await there.type("classified")
    await there.sees("Ctrl+T share")
    await there.app.session.replica.saved()
    assert b"classified" not in await stored(here)
    await there.press("enter")
    await until(lambda: here.aria.prompts == ["classified"], "the model is asked")
    await until(lambda: not list(state_folder().rglob("drafts/*.txt")), "the draft is gone")
    here.aria.end()


async def test_private_draft_is_there_after_a_restart(here: World) -> None:
    async with opened(here) as there:
        await there.press("ctrl+t")
        await there.type("classified")
    async with opened(here) as there:
        await until(lambda: there.message == "classified", "the draft")
        await there.sees("PRIVATE")
        await there.press("ctrl+t")
        await there.app.session.replica.saved()
        document = (await here.context()).document
        assert [document.text(block) for block in document.block_ids()] == ["classified"]


async def test_private_command_is_run_and_never_a_draft(here: World, there: Opened) -> None:
    await there.press("ctrl+t")
    await there.type("!echo out$((40 + 2))")
    await there.press("enter")
    await there.sees("out42")
    document = (await here.context()).document
    assert not any(document.is_draft(block) for block in document.block_ids())


async def test_undo_of_a_private_draft_takes_back_step_by_step_and_redo_brings_back(
    there: Opened,
) -> None:
    await there.press("ctrl+t")
    await there.type("one\ntwo")
    there.app.screen.post_message(Paste(" pasted text"))
    await until(lambda: there.message == "one\ntwo pasted text", "the paste")
    await there.press("ctrl+z")
    await until(lambda: there.message == "one\ntwo", "without the paste")
    await there.press("ctrl+z")
    await until(lambda: there.message == "one\n", "without the second line")
    await there.press("ctrl+y", "ctrl+y")
    await until(lambda: there.message == "one\ntwo pasted text", "all of it again")
    await there.press("ctrl+z")
    await there.type("!")
    await until(lambda: there.message == "one\ntwo!", "typed at the end")
    await there.press("ctrl+y")
    await there.sees("There is nothing to redo here.")


async def test_private_draft_that_is_shared_has_no_step_of_when_it_was_private(
    here: World, there: Opened
) -> None:
    await there.press("ctrl+t")
    await there.type("sent ")
    there.app.screen.post_message(Paste("classified"))
    await until(lambda: "classified" in there.message, "the paste")
    await there.press("ctrl+z", "ctrl+t")
    await there.app.session.replica.saved()
    assert await here.texts() == ["sent "]
    await there.press("ctrl+z")
    await until(lambda: there.message == "", "one step, which is the kernel's")
    await there.press("ctrl+y")
    await until(lambda: there.message == "sent ", "the shared text")
    await there.app.session.replica.saved()
    assert b"classified" not in await stored(here)
