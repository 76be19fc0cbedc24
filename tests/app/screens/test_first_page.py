"""The page of an empty context."""

from __future__ import annotations

from pathlib import Path

from tests.app.opened import Opened, World, opened, world
from tests.waiting import until

TITLE = "People and models write in one document"


async def test_empty_context_says_what_this_is_until_the_first_letter(there: Opened) -> None:
    await there.sees(TITLE)
    await there.sees("aria answers.")
    await there.sees("Ctrl+P")
    await there.type("h")
    await until(lambda: not there.shows(TITLE), "the page is gone")
    await there.press("backspace")
    await there.sees(TITLE)
    await there.send("hi")
    await until(lambda: not there.shows(TITLE), "the page is gone")


async def test_empty_context_without_a_model_says_how_to_get_one(tmp_path: Path) -> None:
    async with world(tmp_path, models=False) as here, opened(here) as there:
        await there.sees(TITLE)
        await there.sees("odel")


async def test_first_page_fits_and_names_other_contexts(here: World) -> None:
    await here.call("context.create", label="notes")
    async with opened(here) as there:
        await there.sees("Other contexts")
        await there.sees("notes")
        for size in ((40, 10), (80, 24), (120, 40)):
            await there.pilot.resize_terminal(*size)
            await there.sees("antiphon")
            await there.sees("aria answers.")
            assert not there.shows("…")
        await there.cell("something")
        await until(lambda: not there.shows(TITLE), "the page is gone")
