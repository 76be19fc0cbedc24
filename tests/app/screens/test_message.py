"""The message: large pastes as labels, and drafts that nobody else sees."""

from __future__ import annotations

from textual.events import Paste

from antiphon.locations import state_folder
from tests.app.opened import Opened, World, opened
from tests.waiting import until

LINES = "".join(f"line {number}\n" for number in range(40))
LABEL = "[pasted 40 lines · 1 kB]"


async def paste(there: Opened, text: str, label: str) -> None:
    there.app.post_message(Paste(text))
    await there.sees(label)


async def test_large_paste_is_a_label_that_is_opened_sent_whole_and_removed(there: Opened) -> None:
    await paste(there, LINES, LABEL)
    await there.sees("Ctrl+O open paste")
    await there.press("ctrl+o")
    await there.sees("line 39")
    assert not there.shows("[pasted") and not there.shows("Ctrl+O")
    await there.type("end")
    assert there.message == f"{LINES}end"
    there.screen.composer.draft.clear()
    await paste(there, LINES, LABEL)
    row = next(at for at, line in enumerate(there.lines) if LABEL in line)
    column = there.lines[row].index(LABEL)
    await there.pilot.click(offset=(column + 3, row))
    await there.sees("line 7")
    there.screen.composer.draft.clear()
    await there.type("Look at this: ")
    await paste(there, LINES, LABEL)
    await there.type(" please")
    await there.sees(f"Look at this: {LABEL} please")
    message = f"Look at this: {LINES} please"
    assert there.message == message
    assert there.screen.composer.size.height == 1
    await there.press("enter")
    await until(lambda: there.message == "", "it is sent")
    assert there.screen.source.text(there.screen.source.ids()[-1]) == message
    await there.type("a")
    await paste(there, "x" * 3_000, "a[pasted 1 line · 3 kB]")
    await there.press("left", "right", "backspace")
    await until(lambda: there.message == "a", "it is gone")
    assert not there.shows("[pasted")


async def test_edit_of_another_inside_a_label_opens_it(here: World, there: Opened) -> None:
    cell = await there.cell("some text")
    await there.edit()
    await there.press("ctrl+home")
    await paste(there, LINES, LABEL)
    document = (await here.context()).document
    await until(lambda: document.text(cell) == f"{LINES}some text", "the others have all of it")
    await here.call("block.splice", block_id=cell, offset=40, insert="of another")
    await until(lambda: not there.shows("[pasted"), "it is open")
    editor = there.screen.area.editor
    assert editor is not None and editor.text == document.text(cell)
    assert editor.cursor_offset == len(editor.text) - len("some text")


async def stored(here: World) -> bytes:
    """Return everything that the kernel has on disk."""
    return b"".join(one.read_bytes() for one in here.data.glob("journal.db*"))


async def test_private_draft_reaches_the_kernel_only_when_it_is_sent_also_after_a_restart(
    here: World,
) -> None:
    async with opened(here) as there:
        await there.press("ctrl+t")
        await there.sees("PRIVATE")
        await there.type("classified")
        await there.sees("Ctrl+T share")
        await there.app.session.replica.saved()
        assert b"classified" not in await stored(here)
    async with opened(here) as there:
        await until(lambda: there.message == "classified", "the draft")
        await there.sees("PRIVATE")
        await there.press("enter")
        await is_sent(here, there)


async def is_sent(here: World, there: Opened) -> None:
    await until(lambda: here.aria.prompts == ["classified"], "the model is asked")
    await until(lambda: not list(state_folder().rglob("drafts/*.txt")), "the draft is gone")
    here.aria.end()
    await there.send("!echo out$((40 + 2))")
    await there.sees("out42")
    document = (await here.context()).document
    assert not any(document.is_draft(block) for block in document.block_ids())


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
