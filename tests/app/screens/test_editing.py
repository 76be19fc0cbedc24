from __future__ import annotations

import pytest

from antiphon.actions import Mode
from antiphon.screens import following
from antiphon.screens.blame_view import REFRESH_SECONDS
from antiphon.screens.model_turns import RunningBlocks
from antiphon.widgets.status import HintBar, LiveStrip
from tests.app.opened import Opened, World
from tests.waiting import until


async def ask(here: World, there: Opened) -> None:
    await there.send("go")
    await until(lambda: here.aria.prompts, "the turn")


async def test_undo_takes_back_only_what_is_mine_and_theirs_after_a_question_and_stops_the_turn(
    here: World, there: Opened
) -> None:
    await ask(here, there)
    here.aria.write("".join(f"line {number}\n" for number in range(7)))
    await there.sees("line 6")
    await there.edit()
    await there.type("typed ")
    here.aria.write("line 7\n")
    await there.sees("line 7")
    await there.press("escape", mode=Mode.NAVIGATE)
    await there.press("u")
    await until(lambda: not there.shows("typed"), "mine has gone")
    assert there.shows("line 0") and there.shows("line 7")

    await there.press("U")
    await there.sees("Stop aria, then take back 8 lines by aria, ")
    assert there.shows(" ago?") or there.shows("just now?")
    await there.press("n", "U")
    await there.sees("Stop aria, then take back 8 lines by aria, ")
    assert there.shows("line 7")
    await there.press("y")
    await there.sees("Took back 8 lines of aria in ¶2 · Ctrl+Y brings them back")
    assert not here.turns.busy
    assert not there.shows("line 7")
    await there.press("U")
    await there.sees("There is nothing of aria to undo in this cell.")
    await there.press("ctrl+y")
    await there.sees("line 7")
    await there.sees("8 lines of aria came back.")
    await there.press("ctrl+y")
    await there.hint("Brought back 1 word")
    await there.press("ctrl+y")
    await there.hint("nothing to redo in this cell.")


async def test_activity_of_a_person_is_typing_only_shortly_after_a_letter(
    here: World, there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = (await here.context()).presence.states

    def is_typing() -> bool:
        return any(one.activity == "typing" for one in present().values())

    for ends in ("backspace", "enter", "escape"):
        monkeypatch.setattr(following, "TYPING_SECONDS", 3_600.0)
        await there.type("a")
        await until(is_typing, "typing")
        await there.press(ends)
        await until(lambda: not is_typing(), f"no typing after {ends}")
    await there.press("i", "b")
    await until(is_typing, "typing")
    monkeypatch.setattr(following, "TYPING_SECONDS", 0.01)
    await there.type("c")
    await until(lambda: not is_typing(), "no typing")


async def test_ctrl_c_stops_a_turn_in_each_of_its_steps_or_copies_a_selection(
    here: World, there: Opened
) -> None:
    async def stopped() -> None:
        await until(lambda: not here.turns.busy, "it is stopped")
        await until(lambda: not there.shows("stop aria"), "the key has gone")

    await there.type("go")
    await there.press("shift+home", "ctrl+c")
    await there.hint("clipboard")
    assert there.app.clipboard == "go"
    await there.press("enter")
    await until(lambda: here.aria.prompts, "the turn")
    await there.sees("Ctrl+C stop aria")
    await there.press("ctrl+c")
    await stopped()

    await there.send("again")
    await until(lambda: len(here.aria.prompts) == 2, "the next turn")
    here.aria.run("echo done")
    await until(lambda: len(here.aria.prompts) == 3, "its second round")
    running = RunningBlocks(there.app.session.document)
    await until(lambda: running.blocks == [], "nothing is being written")
    await there.sees("Ctrl+C stop aria")
    await there.sees("aria writing")
    await there.press("ctrl+c")
    await stopped()

    await there.send("more")
    here.aria.write("This goes on for ")
    await there.sees("This goes on for")
    await there.sees("Ctrl+C stop aria")
    await there.press("up", "ctrl+c")
    await there.hint("Stopped: aria.")
    await there.sees("stopped by you")
    await stopped()


async def test_count_of_new_lines_stands_on_the_rule_moves_nothing_and_leaves_out_ones_own(
    here: World, there: Opened
) -> None:
    for number in range(20):
        await here.cell(f"cell {number}")
    await there.sees("cell 19")
    await until(lambda: there.screen.query_one(LiveStrip).live is None, "nobody writes")
    await there.pilot.pause()
    area = there.screen.area
    before = area.region
    await there.press("pageup")
    await there.cell("something new", "new lines · Ctrl+End")
    await until(lambda: area.region == before, "the live strip has gone")
    rule = there.screen.query_one(HintBar).region.y
    assert there.lines[rule].endswith("── ▼ 4 new lines · Ctrl+End ──")
    there.screen.hint("word " * 11)
    await until(lambda: there.lines[rule].endswith("── ▼ 4 ──"), "a hint has the room")
    await there.pilot.click(HintBar, offset=(70, 0))
    await there.sees("something new")
    there.screen.frame.notice.clear_hint()

    await here.cell("\n".join(f"- point {number}" for number in range(40)))
    await there.sees("point 39")
    await there.edit()
    await there.press(*["enter"] * 4)
    await until(lambda: not there.shows("point 36"), "the end below the screen")
    assert there.screen.cells.unread_lines == 0
    await there.cell("something new", "new line")


def page(there: Opened) -> list[str]:
    """Return the rows of the screen down to the end of the cells."""
    return there.lines[: there.screen.cells.region.bottom]


async def test_blame_shows_who_wrote_what_beside_a_structured_block_until_it_ends(
    here: World, there: Opened
) -> None:
    text = await here.cell("words of bela\n")
    await here.call("block.splice", block_id=text, offset=0, insert="words of amy\n")
    schema = {"type": "map", "fields": [{"name": "title", "field_type": "text"}]}
    new = {"kind": "file", "status": "done", "schema": schema}
    await here.call("block.create", **new, content={"title": "structured"})
    await there.sees("words of bela")
    await there.sees("structured")
    await there.press("up")
    before = page(there)
    await there.press("b")
    said = there.screen.frame.notice.hint
    await until(lambda: page(there) != before, "names in the gutter")
    await there.pilot.pause(2 * REFRESH_SECONDS)
    assert page(there) != before
    assert there.screen.frame.notice.hint == said
    await there.press("b")
    await until(lambda: page(there) == before, "as before")


async def test_undo_and_redo_say_how_much_changed_and_the_cursor_is_in_the_cell_at_once(
    here: World, there: Opened
) -> None:
    cell = await here.cell("some text")
    await here.call("block.splice", block_id=cell, offset=0, insert="a few words ")
    await there.sees("a few words some text")
    await there.press("up", "u")
    await there.sees("Took back 3 words in ¶1 · Ctrl+Y brings them back")
    assert not there.shows("a few words")
    await there.press("ctrl+y")
    await there.hint("Brought back 3 words in ¶1")
    await there.sees("a few words some text")
    assert there.screen.mode is Mode.NAVIGATE
    await there.press("ctrl+y")
    await there.hint("nothing to redo")
    await here.call("block.splice", block_id=cell, offset=12, delete_count=5)
    await there.sees("a few words text")
    await there.press("u")
    await there.sees("Brought back 1 word in ¶1 · Ctrl+Y removes it again")
    # The terminal's cursor is in the cell as soon as it is edited.
    await there.press("enter", mode=Mode.EDIT)

    def place() -> tuple[int, int] | None:
        rows = enumerate(there.lines)
        return next(((row.index("a few"), y) for y, row in rows if "a few" in row), None)

    await there.press("ctrl+home")
    await until(lambda: there.app.cursor_position == place(), "the cursor is in the cell")
    await there.press("escape", "escape", mode=Mode.WRITE)
    last = len(there.lines) - 2
    await until(lambda: there.app.cursor_position.y == last, "the cursor is in the composer")


async def test_draft_of_another_is_not_edited(here: World, there: Opened) -> None:
    guest = here.kernel.open_session(await here.kernel.principal("guest"), "test")
    new = {"role": "user", "kind": "text", "content": "I wonder"}
    draft = (await here.kernel.call(guest, "block.create", new))["block_id"]
    await there.sees("guest › I wonder")
    assert not there.screen.area.edit(draft)
    why = "guest is still writing this: only guest changes it before it is sent."
    await until(lambda: there.screen.frame.notice.hint == why, "the reason")
    assert there.screen.area.editor is None
    await here.kernel.call(guest, "block.status", {"block_id": draft, "status": "done"})
    await until(lambda: there.screen.source.edit_denied_reason(draft) is None, "it is sent")
    assert there.screen.area.edit(draft)
