from __future__ import annotations

from pathlib import Path

from antiphon.modes import Mode
from antiphon.widgets.status import DraftPreview
from antiphon_kernel.types.enums import Status
from tests.app.opened import Opened, World, opened, world
from tests.waiting import until

TEXT = "".join(f"word{number} " for number in range(40))


async def ask(here: World, there: Opened) -> None:
    """A turn of aria begins."""
    await there.live()
    await there.type("go")
    await there.press("enter")
    await until(lambda: here.aria.prompts, "the turn")


async def streaming_block(here: World) -> str:
    listed = await here.call("block.list", role="model", kind="text")
    return str(listed["blocks"][-1]["block_id"])


async def test_a_person_types_inside_what_a_model_is_writing(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await ask(here, there)
        tokens = TEXT.split(" ")
        for token in tokens[:20]:
            here.aria.write(token + " ")
        await there.sees("word19")
        await there.edit()
        for key, token in zip("I was here too. ", tokens[20:36], strict=True):
            here.aria.write(token + " ")
            await there.type(key)
        for token in tokens[36:40]:
            here.aria.write(token + " ")
        here.aria.end()
        block = await streaming_block(here)
        document = (await here.context()).document
        await until(lambda: document.header(block).status == Status.DONE, "the end")
        await there.app.session.replica.saved()
        expected = document.text(block)
        assert expected.count("I was here too. ") == 1
        assert expected.replace("I was here too. ", "").strip() == TEXT.strip()
        editor = there.screen.area.editor
        await until(lambda: editor is not None and editor.text == expected, "the same text here")


async def test_undo_takes_back_only_what_is_mine(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await ask(here, there)
        here.aria.write("One line.\n")
        await there.sees("One line.")
        await there.edit()
        await there.type("typed ")
        here.aria.write("Another line.\n")
        await there.sees("Another line.")
        await there.press("escape")
        await there.mode(Mode.NAVIGATE)
        await there.press("u")
        await until(lambda: not there.shows("typed"), "mine has gone")
        assert there.shows("One line.") and there.shows("Another line.")
        here.aria.end()


async def test_ctrl_y_brings_back_what_u_took_from_a_cell(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("words of mine")
        await there.press("enter")
        await there.sees("│ words of mine")
        await there.press("up")
        await there.mode(Mode.NAVIGATE)
        await there.press("u")
        await until(lambda: not there.shows("words of mine"), "undone")
        await there.press("ctrl+y")
        await there.sees("words of mine")
        assert there.screen.mode is Mode.NAVIGATE
        await there.press("ctrl+y")
        await until(lambda: "nothing to redo" in (there.screen.hint_shown or ""), "a hint")


async def test_nothing_to_undo_is_said(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("not mine")
        async with opened(here) as there:
            await there.live()
            await there.sees("not mine")
            await there.press("up", "u")
            await until(lambda: "nothing to undo" in (there.screen.hint_shown or ""), "a hint")


async def test_others_see_where_the_cursor_is(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        block = await here.cell("some text")
        async with opened(here) as there:
            await there.live()
            await there.sees("some text")
            await there.edit()
            await there.press("right", "right")
            presence = (await here.context()).presence
            await until(
                lambda: any(
                    (one.block, one.cursor) == (block, 2) for one in presence.states().values()
                ),
                "the cursor",
            )
            await there.type("x")
            await until(
                lambda: any(one.activity == "typing" for one in presence.states().values()),
                "typing",
            )


async def test_ctrl_c_stops_the_model_of_the_focused_cell(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await ask(here, there)
        here.aria.write("This goes on for ")
        await there.sees("This goes on for")
        await until(lambda: there.shows("Ctrl+C stop aria"), "the footer names it")
        await there.press("up", "ctrl+c")
        await there.sees("stopped by you")
        await until(lambda: not there.shows("stop aria"), "nothing more to stop")


async def test_ctrl_c_copies_a_selection_instead(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("copy me")
        await there.press("shift+home", "ctrl+c")
        await until(lambda: "clipboard" in (there.screen.hint_shown or ""), "it says where")
        assert there.app.clipboard == "copy me"


async def test_the_tail_is_left_by_scrolling_and_found_again(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await ask(here, there)
        for number in range(60):
            here.aria.write(f"- point {number}\n")
        await there.sees("point 59")
        await there.press("pageup")
        await until(lambda: not there.shows("point 59"), "further up")
        here.aria.write("- point 60\n")
        await there.sees("new line")
        await there.press("ctrl+end")
        await there.sees("point 60")
        await until(lambda: not there.shows("new line"), "the mark has gone")
        here.aria.end()


async def test_blame_shows_who_wrote_what_and_ends_again(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("a line of theirs\n\nanother line of theirs")
        async with opened(here) as there:
            await there.live()
            await there.sees("another line of theirs")
            await there.edit()
            await there.press("ctrl+end", "down", "down", "end", *" and mine", "escape")
            await there.mode(Mode.NAVIGATE)
            before = there.lines
            await there.press("b")
            await until(lambda: there.lines != before, "names in the gutter")
            await there.press("b")
            await until(lambda: there.lines == before, "as before")


async def test_undoing_somebody_elses_edit_is_asked_for_first(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await ask(here, there)
        here.aria.write("A line of theirs.\n")
        here.aria.end()
        await there.sees("A line of theirs.")
        await until(lambda: not there.shows("writing"), "the end of the turn")
        await there.press("up", "U")
        await there.sees("Undo the last edit of aria in this cell?")
        await there.press("n", "U")
        await there.sees("Undo the last edit of aria in this cell?")
        assert there.shows("A line of theirs.")
        await there.press("y")
        await until(lambda: not there.shows("A line of theirs."), "it is taken back")


async def test_a_draft_of_another_is_not_edited_and_a_click_on_it_says_why(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        guest = here.kernel.open_session(await here.kernel.principal("guest"), "test")
        new = {"role": "user", "kind": "text", "content": "I wonder"}
        draft = (await here.kernel.call(guest, "block.create", new))["block_id"]
        await there.sees("guest › I wonder")
        assert not there.screen.area.edit(draft)
        why = "guest is still writing this: only guest changes it before it is sent."
        await until(lambda: there.screen.hint_shown == why, "the reason")
        there.screen.hint("something else")
        await there.pilot.click(DraftPreview, offset=(10, 0))
        await until(lambda: there.screen.hint_shown == why, "the reason again")
        assert there.screen.area.editor is None
        await here.kernel.call(guest, "block.status", {"block_id": draft, "status": "done"})
        await until(lambda: there.screen.source.edit_denied_reason(draft) is None, "it is sent")
        assert there.screen.area.edit(draft)
