"""The page of what a model reads."""

from __future__ import annotations

from typing import Any

from antiphon.actions import Mode
from tests.app.opened import Opened, World
from tests.waiting import until


async def say(here: World, text: str, **more: Any) -> None:
    await here.call("block.create", role="user", kind="text", content=text, status="done", **more)


async def open_page(there: Opened, text: str) -> None:
    """Open the page from the cells, once a cell with this text is there."""
    await there.sees(text)
    await there.press("up", mode=Mode.NAVIGATE)
    await there.press("w")
    await there.sees("Esc leave")


async def test_reading_page_shows_the_stream_with_its_cache_points_and_follows_it(
    here: World, there: Opened
) -> None:
    await say(here, "Which files are here?")
    await open_page(there, "Which files")
    await there.sees("[USER MESSAGE]")
    assert there.shows("[TURN turn_") and there.shows("[path: ar:turn_")
    assert there.shows("cached up to here: tail")
    here.aria.write("Only notes.")
    await there.sees("[AI Agent say]: Only notes.")
    await there.sees("What aria reads")
    here.aria.run("printf 'a\\nb\\n'")
    await there.sees("[react.tool.result] (artifact block)")
    here.aria.end()
    await there.press("escape")
    await until(lambda: not there.shows("What aria reads"), "closed")


async def test_reading_page_folds_long_items_begins_at_the_end_of_the_stream_and_stays_there(
    here: World, there: Opened
) -> None:
    await say(here, "\n".join(f"line {number}" for number in range(30)))
    await open_page(there, "line 29")
    await there.sees("… 31 more lines")
    assert not there.shows("line 3")
    await there.press("space")
    await there.sees("line 3")
    await there.press("z")
    await there.sees("… 31 more lines")
    await there.press("escape", "i", mode=Mode.WRITE)
    for number in range(20):
        await say(here, f"Message {number}.")
    await open_page(there, "Message 19.")
    await there.sees("cached up to here: tail")
    assert there.shows("Message 19.") and not there.shows("Message 1.")
    await say(here, "One more.")
    await until(lambda: there.shows("One more.") and there.shows("Esc leave"), "the new end")
