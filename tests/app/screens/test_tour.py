from __future__ import annotations

from antiphon.actions import Mode
from antiphon.keymap import KeyMap
from antiphon.screens.tour import ENOUGH_TYPED, ENOUGH_WRITTEN, MEND_AT, TYPO, Tour, TourStep
from antiphon_kernel.providers.events import End, TextDelta, ToolCallEvent
from antiphon_kernel.providers.recording import load_recordings
from antiphon_kernel.turns.models import demo_recordings
from tests.app.opened import World, opened
from tests.waiting import until

TEXT = f"Sung by {TYPO} of singers.\n" + "x" * ENOUGH_WRITTEN
PLAIN = "y" * ENOUGH_WRITTEN


def walked_in(text: str = TEXT) -> Tour:
    tour = Tour()
    tour.models_here("aria")
    tour.model_wrote("block", "aria", text)
    return tour


def test_tour_before_enough_text_shows_no_hint() -> None:
    assert walked_in(PLAIN[1:]).hint_text is None


def test_tour_step_follows_each_act() -> None:
    tour = walked_in(PLAIN)
    assert tour.hint_text == "↑ then <key:edit>: write inside what aria is writing"
    tour.editing()
    assert tour.hint_text == "Type. aria goes on below."
    tour.typed(ENOUGH_TYPED - 1)
    assert tour.hint_text == "Type. aria goes on below."
    tour.typed(1)
    assert str(tour.hint_text).startswith("Both stay.")
    tour.undone()
    assert tour.hint_text == "Second terminal: `make join`"
    tour.joined("guest")
    assert tour.hint_text == "guest is here: write in the same cell"
    tour.models_here(None)
    assert tour.hint_text == "Ask something, or !ls"
    tour.sent()
    assert tour.hint_text is None


def test_tour_names_the_file_of_a_model_that_is_at_work() -> None:
    tour = Tour()
    tour.works_on("a.py")
    assert tour.step is TourStep.WAITING
    tour.models_here("aria")
    tour.works_on("a.py")
    assert tour.hint_text == "<key:files>, a.py: type in the file that aria works on"
    tour.models_here(None)
    assert tour.hint_text == "Ask something, or !ls"


def test_tour_in_a_file_tells_how_it_is_saved_once_one_has_typed() -> None:
    tour = Tour(in_file=True)
    tour.editing()
    assert str(tour.hint_text).startswith("<key:edit>, then type in another line")
    tour.typed(ENOUGH_TYPED)
    assert str(tour.hint_text).startswith("<key:save> saves")


def test_tour_asks_to_mend_a_typo_as_soon_as_it_is_there_and_goes_on_when_it_is() -> None:
    tour = Tour()
    assert tour.model_wrote("block", "aria", TEXT[: TEXT.index("\n")]) == TEXT.index(TYPO)
    assert "chirs should be choirs" in str(tour.hint_text)
    tour.editing()
    assert str(tour.hint_text).startswith("Type o")
    assert tour.model_wrote("block", "aria", TEXT + "more") is None
    assert tour.typo_block == "block"
    tour.model_wrote("block", "aria", TEXT.replace("chirs", "choirs"))
    assert not tour.awaits_text
    assert str(tour.hint_text).startswith("Both stay.")


def test_typo_of_the_demo_is_mended_by_one_key() -> None:
    (*_, last) = load_recordings(demo_recordings()[0])[0].rounds
    text = "".join(s.event.text for s in last if isinstance(s.event, TextDelta))
    at = text.index(TYPO) + MEND_AT
    assert (text[:at] + "o" + text[at:]).count("two choirs") == text.count("two choirs") + 1


def test_every_hint_fits_into_80_columns() -> None:
    tour = walked_in()
    for step in type(tour.step):
        tour.step = step
        hint = KeyMap().name_keys(tour.hint_text or "")
        assert len(hint) <= 80 - len(" TRY ") - 1


def test_tour_user_already_editing_gets_next_hint() -> None:
    tour = Tour()
    tour.models_here("aria")
    tour.editing()
    assert tour.hint_text == "Type. aria goes on below."


async def test_tour_leads_through_the_first_minute(here: World) -> None:
    async with opened(here, demo=True) as there:
        await there.send("go")
        await until(lambda: here.aria.prompts, "the turn")
        here.aria.write(f"Sung by {TYPO} that answer.\n\n" + "And a line after it.\n\n" * 10)
        await there.sees("TRY ↑ then Enter: chirs should be choirs")
        for number in range(20):
            here.aria.write(f"More of it, {number}.\n\n")
        await there.sees("aria  More of it")
        assert there.shows(TYPO)
        await there.press("f1")
        await until(lambda: len(there.app.screen_stack) == 2, "the help")
        await there.press("escape")
        await there.sees("TRY ↑ then Enter")
        await there.press("up", "enter")
        await there.sees("TRY Type o")
        await there.press("o")
        await there.sees("TRY Both stay.")
        await there.sees("two choirs that answer")
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.press("u")
        await there.sees("TRY Second terminal")
        assert there.shows(f"{TYPO} that answer")
        async with opened(here, as_name="guest"):
            await there.sees("TRY guest is here")
        here.aria.end()
        await there.sees("TRY Ask something, or !ls")


async def test_tour_leads_into_a_file_that_a_model_works_on(here: World) -> None:
    (here.folder / "choirs.py").write_text("one\ntwo\n")
    async with opened(here, demo=True) as there:
        await there.send("go")
        await until(lambda: here.aria.prompts, "the turn")
        for event in (
            ToolCallEvent("call-1", "file_read", {"path": "choirs.py"}),
            End("tool_use"),
        ):
            here.aria.say(event)
        await there.sees("TRY F6, choirs.py: type in the file that aria works on")
        await there.press("f6")
        await there.sees("Open a file")
        await there.press(*"choirs", "enter")
        await there.sees("TRY Enter, then type in another line")
        await there.press("enter", mode=Mode.EDIT)
        await there.type("x" * ENOUGH_TYPED)
        await there.sees("TRY Ctrl+S saves")
        edit = {"path": "choirs.py", "old_text": "two", "new_text": "2"}
        for event in (ToolCallEvent("call-2", "file_edit", edit), End("tool_use")):
            here.aria.say(event)
        await there.sees("● aria writing")
        here.aria.end()
        await until(lambda: not there.shows("aria"), "the end of the turn")
        assert there.shows("TRY Ctrl+S saves")
