from __future__ import annotations

from antiphon.actions import Mode
from antiphon.widgets.status import FindBar
from tests.app.opened import Opened, World
from tests.waiting import until


async def count(there: Opened, words: str) -> None:
    bar = there.screen.query_one(FindBar)
    await until(lambda: bar.count.words == words, lambda: f"{words!r}, not {bar.count.words!r}")


async def test_find_goes_to_hits_and_into_folds_and_escape_goes_back(
    here: World, there: Opened
) -> None:
    needle = await here.cell("a needle")
    thinking = await here.cell("much\n\nhay", kind="thinking")
    for number in range(6):
        await here.cell(f"cell {number}\n\nwith three lines")
    last = await there.cell("last")
    await there.press("up", "slash", mode=Mode.FIND)
    await there.type("needle")
    await count(there, "1 of 1")
    assert there.screen.cells.focused_cell == needle
    await there.sees("a needle")
    await here.cell("another needle")
    await count(there, "1 of 2")
    await there.press("escape", mode=Mode.NAVIGATE)
    assert there.screen.cells.focused_cell == last
    await there.sees("last")
    assert not there.shows("a needle")

    await there.press("slash", "ctrl+u")
    await there.type("hays")
    await count(there, "not found")
    await there.press("down")
    assert there.screen.frame.notice.hint == "There is no hit to go to."
    await there.press("backspace")
    await count(there, "1 of 1")
    await there.press("down")
    assert there.screen.frame.notice.hint == "This is the only hit."
    assert not there.screen.source.is_folded(thinking)
    await there.sees("much")
    await there.press("escape")
    assert there.screen.source.is_folded(thinking)


async def test_find_from_the_composer_goes_back_into_it_and_n_goes_round_and_counts(
    here: World, there: Opened
) -> None:
    first = await here.cell("one needle and one Needle")
    await here.cell("nothing")
    second = await there.cell("the last needle", "last needle")
    await there.type("half a mess")
    await there.press("ctrl+f")
    await there.type("needle")
    await count(there, "1 of 3")
    await there.press("escape", mode=Mode.WRITE)
    await there.type("age")
    assert there.message == "half a message"
    await there.press("ctrl+u", "ctrl+f")
    await count(there, "1 of 3")
    await there.press("enter", "i")
    await there.sees("Esc ends the search")
    await there.press("escape")
    assert there.screen.mode is Mode.WRITE
    assert not there.screen.query_one(FindBar).has_class("-open")
    await there.press("ctrl+f")
    await count(there, "1 of 3")
    await there.press("enter", mode=Mode.NAVIGATE)
    cells = there.screen.cells
    assert cells.focused_cell == first
    await there.press("n")
    await count(there, "2 of 3")
    await there.press("n")
    await count(there, "3 of 3")
    assert cells.focused_cell == second
    await there.press("n", "N")
    await count(there, "3 of 3")
    await there.press("escape", mode=Mode.NAVIGATE)
    assert not there.screen.query_one(FindBar).has_class("-open")
    assert cells.focused_cell == second


async def test_find_in_edit_stays_in_the_cell_and_selects_the_hit(
    here: World, there: Opened
) -> None:
    await here.cell("a needle elsewhere")
    await there.cell("one needle and a second needle", "second needle")
    await there.edit()
    await there.press("ctrl+f")
    await there.type("needle")
    await count(there, "1 of 2")
    await there.press("down")
    await count(there, "2 of 2")
    await there.press("enter", mode=Mode.EDIT)
    editor = there.screen.area.editor
    assert editor is not None and editor.selected_text == "needle"
    assert editor.cursor_offset == len("one needle and a second needle")
    await there.press("ctrl+home", "right", "ctrl+f")
    await there.press("ctrl+u")
    await there.type("second")
    await count(there, "1 of 1")
    await there.press("escape", mode=Mode.EDIT)
    assert (editor.cursor_offset, editor.anchor_offset) == (1, None)
