from __future__ import annotations

from textual.command import CommandList

from antiphon.actions import Mode
from antiphon.textual_patches.screens import terminal_rows
from tests.app.opened import Opened, World, opened, through_proxy
from tests.app.screens.key_effects import noticed
from tests.waiting import until


async def test_app_starts_in_write_up_leads_to_the_cells_and_esc_back_a_level_at_a_time(
    here: World, there: Opened
) -> None:
    first = await here.cell("first")
    last = await there.cell("last")
    await there.mode(Mode.WRITE)
    assert there.lines[-1].strip().startswith("WRITE")
    await there.sees("Message, or !command · Esc to the cells")
    await there.press("up", mode=Mode.NAVIGATE)
    cells = there.screen.area.cells
    assert cells.focused_cell == last
    assert there.lines[-1].strip().startswith("NAVIGATE")
    await there.sees("› i to write")
    for key, cell in (("k", first), ("j", last), ("g", first), ("end", last)):
        await there.press(key)
        assert cells.focused_cell == cell
    await there.press("enter", mode=Mode.EDIT)
    await until(lambda: there.lines[-2].strip() == "› Esc leaves the cell", "the way out")
    await there.press("shift+right", "escape")
    await there.mode(Mode.EDIT)
    await there.press("escape", mode=Mode.NAVIGATE)
    await there.press("escape", mode=Mode.WRITE)

    await there.type("jkg\ntwo")
    for selecting in (("shift+left",), ("up", "end", "shift+right")):
        await there.press(*selecting)
        assert len(there.screen.composer.editor.selected_text) == 1
        assert await noticed(there, "escape")
        assert there.screen.mode is Mode.WRITE
        assert not there.screen.composer.editor.selected_text
    await there.press("end", "up")
    assert there.screen.mode is Mode.WRITE
    await there.press("up", mode=Mode.NAVIGATE)
    await there.press("i", "!")
    assert there.message == "jkg!\ntwo"
    await there.press("escape", mode=Mode.NAVIGATE)
    assert cells.focused_cell == last


async def test_palette_typed_in_before_the_kernel_answers_has_commands(here: World) -> None:
    async with through_proxy(here) as proxy, opened(here) as there:
        proxy.stop()
        there.burst("ctrl+p", *"go to")
        await there.sees("Go to the cells")
        proxy.go_on()


async def test_terminal_too_small_gets_a_sentence_its_palette_the_keys_and_esc_leaves_a_sidebar(
    there: Opened,
) -> None:
    await there.pilot.resize_terminal(30, 2)
    there.burst("ctrl+p", "t")
    await until(lambda: there.app.screen.query(CommandList), "the palette")
    found = there.app.screen.query_one(CommandList)
    await until(lambda: found.option_count and found.highlighted is not None, "its entries")
    await there.press("pagedown", "pageup", "down", "up", "escape")
    await there.pilot.resize_terminal(80, 24)
    await there.type("kept")
    await there.pilot.resize_terminal(30, 8)
    await there.sees("30 × 8")
    await there.pilot.resize_terminal(40, 10)
    await there.sees("› kept")
    await there.type("!")
    assert there.message == "kept!"
    # A wide one has a sidebar.
    await there.pilot.resize_terminal(120, 40)
    await there.sees("▸ default")
    await there.press("ctrl+f", "f2", "escape", mode=Mode.FIND)
    await there.press("escape", mode=Mode.WRITE)
    await there.pilot.click("Sidebar", offset=(2, 20))
    await there.mode(Mode.CONTEXTS)
    await there.press("escape", mode=Mode.WRITE)


async def test_mouse_presses_keys_of_the_footer_and_selects_text_over_the_ground_of_its_cell(
    here: World, there: Opened
) -> None:
    await here.cell("a cell that has the focus")
    for words, mode in (("navigate", Mode.NAVIGATE), ("edit", Mode.EDIT), ("leave", Mode.NAVIGATE)):
        await there.sees(f" {words}")
        await there.pilot.click("FooterLine", offset=(there.lines[-1].index(words), 0))
        await there.mode(mode)
    await there.pilot.click("FooterLine", offset=(there.lines[-1].index("blame"), 0))
    await there.sees("BLAME be bela")
    await there.press("b")
    await until(lambda: not there.shows("BLAME"), "no blame")
    await there.pilot.mouse_down("BlockList", offset=(3, 1))
    await there.pilot.hover("BlockList", offset=(9, 1))
    await there.pilot.mouse_up("BlockList", offset=(9, 1))
    await there.sees("Ctrl+C copy")
    for line in ("HeaderLine", "FooterLine"):
        await there.pilot.click(line, offset=(1, 0))
    await there.pilot.click("FooterLine", offset=(there.lines[-1].index("copy"), 0))
    await there.sees("Sent 1 line")
    assert there.app.clipboard == "a cell"
    (row,) = [one for one in terminal_rows(there.app) if "has the focus" in one.text]
    selected = there.screen.cells.cell_theme.own_selection.bgcolor
    assert [one.style and one.style.bgcolor == selected for one in row.crop(3, 9)] == [True]


async def test_keys_after_scrolling_act_on_a_cell_that_is_on_the_screen(
    here: World, there: Opened
) -> None:
    blocks = [await here.cell(f"cell number {number}") for number in range(30)]
    await there.sees("number 29")
    await there.press("up", "g")
    await there.sees("number 0")
    cells = there.screen.cells
    await there.press("ctrl+end")
    await there.sees("number 29")
    assert cells.focused_cell == blocks[-1]
    await there.press("k")
    assert cells.focused_cell == blocks[-2]
    for _ in range(2):
        await there.press("pageup")

    def top_rows() -> list[str]:
        """Return the rows of the cells, without the scroll bar's marks, which come later."""
        return [line[:78].rstrip() for line in there.lines if "number" in line]

    top = top_rows()
    await there.press("enter", mode=Mode.EDIT)
    await until(lambda: top_rows() == top, "the same rows")
    await there.press("escape")
    cells.scroll_rows(-20)
    assert cells.viewport.seen_rows(str(cells.focused_cell))
    before = cells.focused_cell
    cells.scroll_rows(30)
    assert cells.focused_cell != before
    assert cells.viewport.seen_rows(str(cells.focused_cell))
