from __future__ import annotations

from pathlib import Path

from antiphon.modes import Mode
from tests.app.opened import opened, world
from tests.waiting import until


async def test_the_app_starts_in_write_and_up_leads_to_the_cells(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("first")
        last = await here.cell("last")
        async with opened(here) as there:
            await there.live()
            await there.sees("last")
            assert there.screen.mode is Mode.WRITE
            assert there.lines[-1].strip().startswith("WRITE")
            await there.press("up")
            await there.mode(Mode.NAVIGATE)
            assert there.screen.area.cells.focused_cell == last
            assert there.lines[-1].strip().startswith("NAVIGATE")


async def test_esc_goes_out_one_level_at_a_time_and_then_only_hints(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("something to edit")
        async with opened(here) as there:
            await there.live()
            await there.sees("something")
            await there.edit()
            await there.press("shift+right", "escape")
            await there.mode(Mode.NAVIGATE)
            await there.press("escape")
            await there.mode(Mode.WRITE)
            await there.press("escape")
            await until(lambda: there.screen.hint_shown, "a hint")
            assert there.screen.mode is Mode.WRITE


async def test_letters_are_commands_in_navigate_and_text_elsewhere(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        first = await here.cell("first")
        last = await here.cell("last")
        async with opened(here) as there:
            await there.live()
            await there.sees("last")
            await there.type("jkgi")
            assert there.message == "jkgi"
            await there.press("ctrl+u", "up")
            await there.mode(Mode.NAVIGATE)
            cells = there.screen.area.cells
            await there.press("k")
            assert cells.focused_cell == first
            await there.press("j")
            assert cells.focused_cell == last
            await there.press("g")
            assert cells.focused_cell == first
            await there.press("i")
            await there.mode(Mode.WRITE)


async def test_help_opens_from_anywhere_and_closes_again(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.press("f1")
        await there.sees("Esc closes this page.")
        await there.press("escape")
        await until(lambda: not there.shows("Esc closes this page."))
        assert there.screen.mode is Mode.WRITE
        await there.type("x")
        assert there.message == "x"


async def test_the_palette_performs_actions(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("something")
        async with opened(here) as there:
            await there.live()
            await there.sees("something")
            await there.press("ctrl+p")
            await there.type("go to the")
            await there.sees("Go to the cells")
            await there.press("enter")
            await there.mode(Mode.NAVIGATE)


async def test_the_sidebar_comes_and_goes(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here, size=(120, 40)) as there:
        await there.live()
        await there.sees("people")
        await there.sees("▸ default")
        await there.press("f2")
        await there.mode(Mode.CONTEXTS)
        await there.press("f2")
        await until(lambda: not there.shows("people"), "no sidebar")
        await there.mode(Mode.WRITE)


async def test_a_terminal_that_is_too_small_gets_a_sentence_and_keeps_the_mode(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.type("kept")
        await there.pilot.resize_terminal(30, 8)
        await there.sees("30 × 8")
        await there.pilot.resize_terminal(40, 10)
        await there.sees("› kept")
        await there.type("!")
        assert there.message == "kept!"


async def test_a_cell_that_cannot_be_edited_says_so_and_gives_its_command(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("!echo hello")
        await there.press("enter")
        await there.sees("$ echo hello")
        await there.press("up", "g", "e")
        await there.mode(Mode.WRITE)
        assert there.message == "!echo hello"
        assert there.screen.hint_shown


async def test_ctrl_c_without_anything_to_stop_hints(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.press("ctrl+c")
        await until(lambda: "Ctrl+Q" in (there.screen.hint_shown or ""), "the hint")
