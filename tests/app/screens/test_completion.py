"""Completion and commands in the composer, and files that a message names."""

from __future__ import annotations

from pathlib import Path

from antiphon.actions import Mode
from antiphon_kernel.types.enums import Status
from tests.app.opened import Opened, World
from tests.app.screens.key_effects import noticed
from tests.waiting import until


def open_list(there: Opened) -> list[str]:
    """Return what the list offers."""
    completion = there.screen.composer.completions.completion
    return [] if completion is None else [one.text for one in completion.choices]


def details(there: Opened) -> dict[str, str]:
    """Return what the list says of each choice."""
    completion = there.screen.composer.completions.completion
    return {} if completion is None else {one.text: one.detail for one in completion.choices}


async def test_at_sign_offers_people_models_and_files_which_tab_up_and_enter_choose(
    here: World, there: Opened
) -> None:
    notes(here)
    await until(lambda: "aria" in there.screen.models.here.names, "the models")
    await there.type("@")
    assert open_list(there) == ["@amy", "@aria", "@data/", "@docs/", "@kernel.sock"]
    await there.sees("person")
    assert {"@data/": "folder", "@kernel.sock": "file"}.items() <= details(there).items()
    await there.type("am")
    assert open_list(there) == ["@amy"]
    await there.press("tab")
    assert (there.message, open_list(there)) == ("@amy", [])
    await there.type(" see @do")
    await there.press("tab")
    await until(lambda: there.message == "@amy see @docs/", "the folder is completed")
    await there.press("n", "tab")
    await until(lambda: there.message == "@amy see @docs/notes.md", "the file is completed")
    await there.press("tab")
    assert there.message == "@amy see @docs/notes.md"

    await there.press("ctrl+u")
    await there.type("@ar")
    assert await noticed(there, "up")
    assert (there.screen.mode, open_list(there)) == (Mode.WRITE, ["@aria"])
    await there.press("up", mode=Mode.NAVIGATE)
    assert there.message == "@ar"
    # Enter sends what is typed unless a line was chosen.
    await there.press("i", "ctrl+u")
    await there.type("@a")
    await there.press("down", "enter")
    assert there.message == "@aria"
    await there.send(" see @da")
    await until(lambda: here.aria.prompts == ["@aria see @da"], "sent as it was typed")
    here.aria.end()


async def test_slash_command_is_completed_with_its_argument_and_run(there: Opened) -> None:
    await there.cell("something")
    await there.type("/th")
    await there.sees("Show another theme")
    await there.press("escape")
    assert (open_list(there), there.screen.mode) == ([], Mode.WRITE)
    await there.type("e")
    assert open_list(there) == []
    await there.press("escape", mode=Mode.NAVIGATE)

    # It has to be a command's whole name, though that begins the names of others.
    await there.press("i", "ctrl+u")
    await there.type("/copy")
    assert open_list(there) == ["/copy", "/copy-markdown", "/copy-json"]
    await there.press("enter")
    await until(lambda: there.app.clipboard == "something", "the copy")
    assert there.message == ""

    await there.send("/the")
    assert there.message == "/theme "
    await there.send("antiphon-l")
    assert there.message == "/theme antiphon-light"
    await there.press("enter")
    await until(lambda: there.app.theme == "antiphon-light", "the theme")
    assert there.message == ""


async def test_new_makes_a_context_and_rename_names_it_which_is_not_left_offline(
    here: World, there: Opened
) -> None:
    await there.type("/new other")
    there.burst("enter", "m", "i", "n", "e")
    await until(lambda: there.app.session.document.label == "other", "the new context")
    await there.live()
    await until(lambda: there.message == "mine", "what was typed next")
    await there.press("ctrl+u")
    await there.send("/rename better")
    await there.sees("· better")
    await there.screen.contexts.fetch()
    await here.close_doors()
    await until(lambda: not there.app.session.is_live, "offline")
    await there.type("/context default")
    there.burst("enter", "m", "o", "r", "e")
    await there.sees("another context needs the kernel")
    await until(lambda: there.message == "/context default\nmore", "what was typed next")


async def test_command_or_file_that_is_none_is_told_and_stays_and_a_path_and_files_are_sent(
    here: World, there: Opened
) -> None:
    for text, told in {
        "/nothing": "There is no command /nothing",
        "/help me": "/help takes nothing behind it",
        "/theme nowhere": "/theme takes a theme",
        "/context nowhere": "There is no other context 'nowhere'",
        "/rename No label": "Not renamed",
        "/new No label": "Not made",
    }.items():
        await there.send(text)
        await there.sees(told)
        await there.type("s")
        await until(lambda: there.message == f"{text}s", "it can be written on")  # noqa: B023
        await there.press("ctrl+u")
    assert here.aria.prompts == []
    await there.send("/usr/bin is full")
    await until(lambda: here.aria.prompts == ["/usr/bin is full"], "sent")
    here.aria.end()
    await until(lambda: not here.turns.busy, "its end")
    here.aria.prompts.clear()
    notes(here)
    with (here.folder / "large.bin").open("wb") as file:
        file.truncate(5_000_001)
    for name, why in {"docs/none.md": "docs/none.md", "large.bin": "5000000"}.items():
        await there.send(f"read @docs/notes.md and @{name}")
        await there.hint("Not sent")
        await there.hint(why)
        assert there.message == f"read @docs/notes.md and @{name}"
        await there.press("ctrl+u")
    assert await attached(here) == []
    assert here.aria.prompts == []

    await there.send("@aria read @docs/notes.md, please")
    await until(lambda: here.aria.prompts, "the model is asked")
    assert here.aria.prompts == ["@aria read @docs/notes.md, please"]
    assert await attached(here) == [("notes.md", "remember")]
    document = (await here.context()).document
    message = next(one for one in document.block_ids() if "please" in document.text(one))
    assert document.header(message).status == Status.DONE
    (file_block,) = [one for one in document.block_ids() if document.header(one).blob is not None]
    assert document.header(file_block).parent == message
    here.aria.end()


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
