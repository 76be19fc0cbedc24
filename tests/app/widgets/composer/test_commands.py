"""A command runs at once only if all of it was typed in this window and is on the screen."""

from __future__ import annotations

from textual import events

from antiphon.screens.modals import COMMAND_TITLE
from tests.app.opened import Opened, World, opened
from tests.app.widgets.composer.test_composer import in_kernel
from tests.waiting import until

PADDED = "!touch ran #" + "\n" * 40
"""A command that is scrolled out of the composer by what comes after it."""


async def put_in(here: World, there: Opened, offset: int, text: str) -> None:
    """Write into the message as the same person elsewhere: nobody else may."""
    await until(lambda: there.screen.composer.draft.block, "a draft block")
    block = there.screen.composer.draft.block
    document = (await here.context()).document
    before = there.message
    await until(lambda: block in document and document.text(str(block)) == before, "in the kernel")
    await here.call("block.splice", block_id=block, offset=offset, insert=text)
    after = before[:offset] + text + before[offset:]
    await until(lambda: there.message == after, "it has come")


async def only_asks(here: World, there: Opened) -> None:
    """Wait for the question. Nothing has run, nor been asked to: a call would be a block."""
    await there.sees(COMMAND_TITLE)
    assert not (here.folder / "ran").exists()
    document = (await here.context()).document
    assert not [one for one in document.block_ids() if document.header(one).is_shell]


async def runs(here: World) -> None:
    await until((here.folder / "ran").exists, "the command has run")


async def leave_question(there: Opened) -> None:
    await there.press("escape")
    await until(lambda: not there.shows(COMMAND_TITLE), "the question has gone")


async def test_enter_asks_if_the_mark_or_a_part_of_a_command_came_from_elsewhere(
    here: World, there: Opened
) -> None:
    for text in ("!touch ran #", PADDED):
        await there.type("thank you")
        await put_in(here, there, 0, text)
        await there.press("enter")
        await there.sees(COMMAND_TITLE)
        await there.sees("touch ran #")
        await there.press("y", "enter")
        await leave_question(there)
        assert there.message == text + "thank you"
        await there.press("enter")
        await only_asks(here, there)
        await leave_question(there)
        there.screen.composer.draft.clear()
    await there.type("!true")
    await put_in(here, there, 5, "; touch ran")
    await there.sees("? !true; touch ran")
    await there.type(" again")
    await there.press("enter")
    await only_asks(here, there)
    await leave_question(there)
    command = "echo " + "漢字" * 100 + "\t; \u202etouch ran"
    there.screen.composer.draft.write("!" + command)
    await there.press("enter")
    await there.sees(COMMAND_TITLE)
    shown = "".join("".join(line.split()) for line in there.lines)
    assert "漢字" * 100 + ";⇠touchran" in shown, "the question shows a wide command whole"


async def test_command_of_an_earlier_session_is_continued_at_its_end_and_runs_when_one_says_so(
    here: World,
) -> None:
    async with opened(here) as there:
        await there.type("!touch ra")
        await in_kernel(here, "!touch ra", is_draft=True)
        await there.press("ctrl+q")
    async with opened(here) as again:
        await until(lambda: again.message == "!touch ra", "the draft")
        await again.sees("? !touch ra")
        await again.press("n", "enter")
        await only_asks(here, again)
        await again.sees("Not all of it was typed in this window.")
        await again.press("ctrl+r")
        await runs(here)
        assert again.message == ""


async def test_copied_command_and_one_that_an_undo_brought_back_ask_unless_edited_here(
    here: World, there: Opened
) -> None:
    await here.cell("touch ran", kind="tool_call", status="running")
    await there.sees("touch ran")
    await there.press("up", "enter")
    await there.sees("The call stays as it is: edit a copy of it here, or press Enter to be asked.")
    assert there.message == "!touch ran"
    await there.press("enter")
    await only_asks(here, there)
    await leave_question(there)
    there.screen.composer.draft.clear()
    there.app.post_message(events.Paste("!touch ran"))
    document = (await here.context()).document
    await until(lambda: "!touch ran" in [document.text(one) for one in document.block_ids()])
    await there.press("ctrl+z")
    await until(lambda: there.message == "", "it is taken back")
    await there.press("ctrl+y")
    await until(lambda: there.message == "!touch ran", "it is there again")
    await there.press("enter")
    await only_asks(here, there)
    await there.press("ctrl+r")
    await runs(here)
    (here.folder / "ran").unlink()
    await here.cell("touch ra", kind="tool_call")
    await there.sees("$ touch ra")
    await there.press("up", "G", "enter")
    await until(lambda: there.message == "!touch ra", "the command")
    await there.type("n")
    await there.press("enter")
    await runs(here)


async def test_command_that_is_not_all_on_the_screen_is_shown_to_its_end_first(
    here: World,
) -> None:
    async with opened(here, size=(40, 10)) as there:
        there.app.post_message(events.Paste("!touch ran" + "\n" * 60 + "true # the last line"))
        await there.sees("? [pasted 61 lines")
        await there.press("enter")
        await only_asks(here, there)
        await leave_question(there)
        await there.press("ctrl+o")
        await there.sees("true # the last line")
        await there.press("enter")
        await there.sees(COMMAND_TITLE)
        await there.sees("touch ran")
        await there.sees("Space more of it")
        await there.press("ctrl+r")
        await only_asks(here, there)
        while not there.shows("Ctrl+R"):
            await there.press("space")
        assert there.shows("true # the last line")
        await there.press("ctrl+r")
        await runs(here)


async def test_confirmed_command_that_fails_is_asked_about_again(here: World) -> None:
    async with opened(here, as_name="guest") as there:
        there.screen.composer.draft.write("!touch ran")
        await there.press("enter")
        await there.sees(COMMAND_TITLE)
        await there.press("ctrl+r")
        await until(lambda: "owner" in (there.screen.frame.notice.hint or ""), "the reason")
        assert there.message == "!touch ran"
        await there.press("enter")
        await there.sees(COMMAND_TITLE)
