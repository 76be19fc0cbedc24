"""Files named in the composer are attached to the message, or it is not sent."""

from __future__ import annotations

from pathlib import Path

from antiphon_kernel.types.enums import Status
from tests.app.opened import Opened, World
from tests.waiting import until


async def attached(here: World) -> list[tuple[str | None, str]]:
    """Return path and text of each attached file in the kernel."""
    document = (await here.context()).document
    headers = map(document.header, document.block_ids())
    return [(one.path, document.text(one.id)) for one in headers if one.blob is not None]


def notes(here: World) -> Path:
    file = here.folder / "docs" / "notes.md"
    file.parent.mkdir()
    file.write_text("remember")
    return file


async def test_message_that_names_a_file_is_sent_with_it(here: World, there: Opened) -> None:
    notes(here)
    await there.type("@aria read @docs/notes.md, please")
    await there.press("enter")
    await until(lambda: here.aria.prompts, "the model is asked")
    assert here.aria.prompts == ["@aria read @docs/notes.md, please"]
    assert await attached(here) == [("notes.md", "remember")]
    document = (await here.context()).document
    message, file, *_ = document.block_ids()
    assert document.header(message).status == Status.DONE
    assert document.header(file).parent == message
    here.aria.end()


async def test_message_that_names_a_missing_file_comes_back_with_the_reason(
    here: World, there: Opened
) -> None:
    notes(here)
    await there.type("read @docs/notes.md and @docs/none.md")
    await there.press("enter")
    await there.sees("Not sent")
    assert there.message == "read @docs/notes.md and @docs/none.md"
    assert await attached(here) == []
    assert here.aria.prompts == []


async def test_message_that_names_a_file_too_large_comes_back(here: World, there: Opened) -> None:
    with (here.folder / "large.bin").open("wb") as file:
        file.truncate(5_000_001)
    await there.type("read @large.bin")
    await there.press("enter")
    await there.sees("Not sent")
    assert there.screen.hint_shown is not None and "5000000" in there.screen.hint_shown
    assert there.message == "read @large.bin"


async def test_tab_behind_an_at_sign_completes_names_and_files(here: World, there: Opened) -> None:
    notes(here)
    await there.type("@am")
    await there.press("tab")
    assert there.message == "@amy"
    await there.type(" see @do")
    await there.press("tab")
    await until(lambda: there.message == "@amy see @docs/", "the folder is completed")
    await there.press("n", "tab")
    await until(lambda: there.message == "@amy see @docs/notes.md", "the file is completed")
    await there.press("tab")
    assert there.message == "@amy see @docs/notes.md"


async def test_name_of_nobody_is_told_before_sending_with_the_nearest(there: Opened) -> None:
    await there.type("@arai hi")
    await there.sees("Nobody is called arai. Nearest: aria.")
    assert there.message == "@arai hi"


async def test_missing_file_is_told_before_sending(here: World, there: Opened) -> None:
    notes(here)
    await there.type("read @docs/none.md and @docs/notes.md ")
    await there.sees("There is no file docs/none.md here")
