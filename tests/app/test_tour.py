from __future__ import annotations

from antiphon.actions import Mode
from antiphon.tour import ENOUGH_TYPED, ENOUGH_WRITTEN, Tour
from tests.app.opened import World, opened
from tests.waiting import until


def walked_in() -> Tour:
    tour = Tour()
    tour.models_here(True)
    tour.model_wrote("aria", ENOUGH_WRITTEN)
    return tour


def test_tour_before_enough_text_shows_no_hint() -> None:
    tour = Tour()
    tour.models_here(True)
    tour.model_wrote("aria", ENOUGH_WRITTEN - 1)
    assert tour.hint_text is None


def test_tour_step_follows_each_act() -> None:
    tour = walked_in()
    assert tour.hint_text == "↑ then Enter: fix the typo above while aria writes"
    tour.editing()
    assert tour.hint_text == "Type. aria goes on below."
    tour.typed(ENOUGH_TYPED - 1)
    assert tour.hint_text == "Type. aria goes on below."
    tour.typed(1)
    assert str(tour.hint_text).startswith("Both stay.")
    tour.undone()
    assert tour.hint_text == "Second terminal: `make join`"
    tour.joined("guest")
    assert tour.hint_text == "guest is here"
    tour.models_here(False)
    assert tour.hint_text == "Ask something, or !ls"
    tour.sent()
    assert tour.hint_text is None


def test_tour_user_already_editing_gets_next_hint() -> None:
    tour = Tour()
    tour.editing()
    assert tour.hint_text == "Type. The model goes on below."


def test_f1_hides_it_for_good() -> None:
    tour = walked_in()
    tour.hide()
    tour.editing()
    assert tour.hint_text is None


def test_end_of_the_stream_invites_to_ask() -> None:
    tour = walked_in()
    tour.models_here(False)
    assert tour.hint_text == "Ask something, or !ls"


async def test_tour_leads_through_the_first_minute(here: World) -> None:
    async with opened(here, demo=True) as there:
        await there.type("go")
        await there.press("enter")
        await until(lambda: here.aria.prompts, "the turn")
        here.aria.write("This is a rather long line of text with a typo in its midle.\n" * 4)
        await there.sees("TRY ↑ then Enter: fix the typo above while aria writes")
        await there.press("up", "enter")
        await there.sees("TRY Type. aria goes on below.")
        await there.type("ten letters")
        await there.sees("TRY Both stay.")
        await there.press("escape")
        await there.mode(Mode.NAVIGATE)
        await there.press("u")
        await there.sees("TRY Second terminal")
        async with opened(here, as_name="guest"):
            await there.sees("TRY guest is here")
        here.aria.end()
        await there.sees("TRY Ask something, or !ls")
        await there.press("f1", "escape")
        await until(lambda: not there.shows("TRY"), "F1 hides it")
