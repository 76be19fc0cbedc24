"""Hints above the composer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.actions import Mode
from antiphon.screens.picker import PickerEntry, PickerModal
from antiphon.widgets.status import HintBar
from tests.app.opened import Opened, World, opened
from tests.waiting import until


async def test_a_long_hint_wraps_and_leaves_its_rows_again_and_a_failure_is_one(
    there: Opened,
) -> None:
    hint_bar = there.screen.query_one(HintBar)
    there.screen.hint("one two three four five " * 6 + "six")
    await there.sees("six")
    await until(lambda: hint_bar.size.height == 2)
    there.screen.hint("long " * 100)
    await there.sees("…")
    await until(lambda: hint_bar.size.height == 3)
    there.screen.hint("short")
    await there.sees("short")
    await until(lambda: hint_bar.size.height == 1)
    begun, end = [], asyncio.Event()

    async def work() -> None:
        begun.append(1)
        await end.wait()

    for _ in range(3):
        there.screen.run_one_of("group", work)
        await there.pilot.pause()
    assert len(begun) == 1, "work that is under way is not begun again"
    end.set()
    await there.pilot.pause()
    there.screen.run_one_of("group", work)
    await until(lambda: len(begun) == 2, "the work, once more")

    async def fail(typed: str) -> Sequence[PickerEntry]:
        raise RuntimeError(f"no choices for {typed!r}")

    await there.app.push_screen(PickerModal("Choose", fail))
    told = "Something went wrong: RuntimeError(\"no choices for ''\")"
    await until(lambda: there.screen.frame.notice.hint == told, "the failure")


async def test_past_hints_are_read_again_in_a_list_and_settings_name_their_file_in_the_palette(
    here: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    async with opened(here, size=(200, 24)) as there:
        for text in ("the first one", "long " * 100 + "to its end", "the last one"):
            there.screen.hint(text)
        there.screen.open_context((await here.call("context.create", label="other"))["context_id"])
        await until(lambda: there.app.session.document.label == "other", "another screen")
        await there.palette("Show past hints")
        await there.sees("the first one")
        rows = there.lines
        found = [
            next(row for row, line in enumerate(rows) if text in line)
            for text in ("the last one", "to its end", "the first one")
        ]
        assert found == sorted(found)
        await there.press("escape")
        await there.sees("WRITE")
        await there.palette("Settings and keys")
        await there.sees(str(tmp_path / "antiphon" / "settings.toml"))


async def test_blame_has_a_legend_that_hints_leave_and_what_a_tool_gave_no_editing(
    there: Opened,
) -> None:
    await there.cell("written by bela")
    await there.press("escape", "b")
    await there.sees("BLAME be bela")
    there.screen.hint("Something has happened.")
    await until(
        lambda: there.shows("Something has happened.") and there.shows("BLAME be bela"), "both"
    )
    await there.press("b")
    await until(lambda: not there.shows("BLAME"), "it is over")
    await there.press("i")
    await there.send("!echo given")
    await there.sees("✓")
    await there.press("escape", mode=Mode.NAVIGATE)
    await until(lambda: not there.shows("Enter edit"), "no editing of the result")
    await there.press("k")
    await there.sees("Enter edit")
    await there.press("enter", mode=Mode.WRITE)
    assert there.message == "!echo given"
    assert there.screen.frame.notice.hint


async def test_page_key_at_the_end_and_thinking_folded_out_of_sight_are_told(
    here: World, there: Opened
) -> None:
    await here.cell("much\n\nthought", kind="thinking")
    await there.cell("the cell with the focus")
    await there.press("up", "i")
    await here.cell("\n\n".join(f"line {number}" for number in range(20)))
    await there.sees("line 19")
    await there.press("pagedown")
    await there.sees("This is the end of the page.")
    await there.press("up", "G", "z")
    await there.sees("The thinking is out of sight")
