"""Completion of addresses and commands in the composer."""

from __future__ import annotations

import pytest

from antiphon.actions import Mode
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


async def test_at_sign_offers_people_models_and_files(here: World, there: Opened) -> None:
    (here.folder / "notes.md").write_text("")
    await until(lambda: "aria" in there.screen.models.here.names, "the models")
    await there.type("@")
    assert open_list(there) == ["@amy", "@aria", "@data/", "@kernel.sock", "@notes.md"]
    await there.sees("person")
    assert {"@data/": "folder", "@notes.md": "file"}.items() <= details(there).items()
    await there.type("ar")
    assert open_list(there) == ["@aria"]
    await there.press("tab")
    assert (there.message, open_list(there)) == ("@aria", [])


async def test_enter_sends_what_is_typed_unless_a_line_was_chosen(
    here: World, there: Opened
) -> None:
    await until(lambda: "aria" in there.screen.models.here.names, "the models")
    await there.type("@a")
    await there.press("down", "enter")
    assert there.message == "@aria"
    await there.type(" see @da")
    await there.press("enter")
    await until(lambda: here.aria.prompts == ["@aria see @da"], "sent as it was typed")
    here.aria.end()


async def test_escape_closes_the_list_and_stays_in_the_message(there: Opened) -> None:
    await there.type("/th")
    await there.sees("Show another theme")
    await there.press("escape")
    assert (open_list(there), there.screen.mode) == ([], Mode.WRITE)
    await there.type("e")
    assert open_list(there) == []
    await there.press("escape")
    await there.mode(Mode.NAVIGATE)


async def test_slash_command_is_completed_with_its_argument_and_run(there: Opened) -> None:
    await there.type("/the")
    await there.press("enter")
    assert there.message == "/theme "
    await there.type("antiphon-l")
    await there.press("enter")
    assert there.message == "/theme antiphon-light"
    await there.press("enter")
    await until(lambda: there.app.theme == "antiphon-light", "the theme")
    assert there.message == ""


async def test_slash_command_of_the_palette_is_run(there: Opened) -> None:
    await there.type("/help")
    await there.press("enter")
    await there.sees("Esc closes this page")


async def test_renamed_context_has_its_new_name_in_the_header(here: World, there: Opened) -> None:
    made = await here.call("context.create", label="other")
    there.screen.frame.open_context(made["context_id"])
    await until(lambda: there.app.session.document.label == "other", "the other context")
    await there.live()
    await there.type("/rename better")
    await there.press("enter")
    await there.sees("better")


@pytest.mark.parametrize("text", ["/rename No label", "/new No label"])
async def test_command_that_the_kernel_refuses_stays(there: Opened, text: str) -> None:
    await there.type(text)
    await there.press("enter")
    await there.sees("Not ")
    await there.type("s")
    await until(lambda: there.message == f"{text}s", "it can be written on")


async def test_command_with_too_much_behind_it_stays(there: Opened) -> None:
    await there.type("/help me")
    await there.press("enter")
    await there.sees("/help takes nothing behind it")
    assert there.message == "/help me"


async def test_context_that_there_is_not_is_told_and_stays(there: Opened) -> None:
    await there.type("/context nowhere")
    await there.press("enter")
    await there.sees("There is no other context 'nowhere'")
    assert there.message == "/context nowhere"


async def test_context_is_not_left_offline(here: World, there: Opened) -> None:
    await here.call("context.create", label="other")
    await there.screen.contexts.fetch()
    await here.close_doors()
    await until(lambda: not there.app.session.is_live, "offline")
    await there.type("/context other")
    there.burst("enter", "m", "o", "r", "e")
    await there.sees("another context needs the kernel")
    await until(lambda: there.message == "/context other\nmore", "what was typed next")


async def test_new_makes_a_context_and_opens_it(there: Opened) -> None:
    await there.type("/new other")
    there.burst("enter", "m", "i", "n", "e")
    await until(lambda: there.app.session.document.label == "other", "the new context")
    await there.live()
    await until(lambda: there.message == "mine", "what was typed next")


async def test_argument_that_is_none_of_the_choices_is_told_and_stays(there: Opened) -> None:
    await there.type("/theme nowhere")
    await there.press("enter")
    await there.sees("/theme takes a theme")
    assert there.message == "/theme nowhere"


async def test_unknown_command_is_told_and_stays(here: World, there: Opened) -> None:
    await there.type("/nothing")
    await there.press("enter")
    await there.sees("There is no command /nothing")
    assert there.message == "/nothing"
    assert here.aria.prompts == []


async def test_path_at_the_start_of_a_message_is_sent(here: World, there: Opened) -> None:
    await there.type("/usr/bin is full")
    await there.press("enter")
    await until(lambda: here.aria.prompts == ["/usr/bin is full"], "sent")
    here.aria.end()


async def test_enter_runs_a_command_whose_name_begins_the_names_of_others(
    here: World, there: Opened
) -> None:
    await here.cell("something")
    await there.sees("something")
    await there.press("up", "i")
    await there.type("/copy")
    assert open_list(there) == ["/copy", "/copy-markdown", "/copy-json"]
    await there.press("enter")
    await until(lambda: there.app.clipboard == "something", "the copy")
    assert there.message == ""


async def test_up_chooses_the_only_line_and_then_leads_to_the_cells(there: Opened) -> None:
    await until(lambda: "aria" in there.screen.models.here.names, "the models")
    await there.type("@ar")
    assert await noticed(there, "up")
    assert (there.screen.mode, open_list(there)) == (Mode.WRITE, ["@aria"])
    await there.press("up")
    await there.mode(Mode.NAVIGATE)
    assert there.message == "@ar"
