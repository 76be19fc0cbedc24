"""The history of a cell and of the page, gone through by keys."""

from __future__ import annotations

from typing import Any

from antiphon.actions import Mode
from antiphon.render.markdown import WIDE_WIDTH
from tests.app.opened import Opened, World, opened
from tests.waiting import until


async def say(here: World, text: str, **more: Any) -> str:
    made = await here.call(
        "block.create", role="user", kind="text", content=text, status="done", **more
    )
    return str(made["block_id"])


async def open_history(there: Opened, text: str, *, keys: str = "h") -> None:
    await there.sees(text)
    await there.press("up", mode=Mode.NAVIGATE)
    await there.press(keys)
    await there.sees("History of")


async def edited(here: World) -> str:
    """Return a cell of three versions."""
    block = await say(here, "milk\nbread")
    await here.call("block.splice", block_id=block, offset=5, insert="rye ")
    await here.call("block.splice", block_id=block, offset=0, delete_count=5)
    return block


async def test_history_of_a_cell_shows_its_versions_and_restores_one_by_an_edit(
    here: World, there: Opened
) -> None:
    block = await edited(here)
    await open_history(there, "rye bread")
    await there.sees("3 of 3")
    await there.sees("milk")
    await there.press("left")
    await there.sees("2 of 3")
    await there.sees("rye bread")
    await there.press("left")
    await there.sees("1 of 3")
    await until(lambda: not there.shows("rye"), "the first version is shown")
    await there.press("end")
    await there.sees("3 of 3")
    await there.press("home")
    await there.sees("1 of 3")
    await there.press("r")
    await there.sees("as in its version 1")
    assert (await here.call("block.read", block_id=block))["content"] == "milk\nbread"
    await there.press("u")
    await until(lambda: text_of(there, block) == "rye bread", "the restoring is taken back")


async def test_page_is_shown_as_it_was_and_forked_there(here: World, there: Opened) -> None:
    await edited(here)
    await there.press(*"draft")  # whose keystrokes are no versions of the page
    await until(lambda: len(there.screen.source.document.block_ids()) == 2, "the draft is shared")
    await say(here, "Anything else?")
    await open_history(there, "Anything else?")
    await there.press("tab")
    await there.sees("the page")
    await there.sees("4 of 4")
    await there.sees("Anything else?")
    await there.press("left")
    await until(lambda: not there.shows("Anything else?"), "the page before")
    await there.sees("rye bread")
    await there.press("F")
    await until(lambda: there.screen.contexts.label != "default", "the fork is shown")
    await there.sees("rye bread")
    assert not there.shows("Anything else?")


def text_of(there: Opened, block: str) -> str:
    return there.screen.source.document.text(block)


async def test_history_wraps_at_the_width_of_the_page_and_names_a_cell_by_number_and_kind(
    here: World,
) -> None:
    first = await say(here, "away")
    await here.cell("ls bread", kind="tool_call")
    await here.call("block.exclude", block_id=first, excluded=True, cut_out=True)
    await say(here, "many words " * 60)
    async with opened(here, size=(200, 60)) as there:
        await open_history(there, "many words")
        await there.sees("1 of 1")
        await until(lambda: sum("many words" in line for line in there.lines) > 1, "wrapped")
        assert max(len(line) for line in there.lines if "many words" in line) <= WIDE_WIDTH + 1
        await there.press("escape", "k", "h")
        await there.sees("bela ¶2 tool call")
