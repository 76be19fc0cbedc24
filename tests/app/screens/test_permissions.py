"""Permission in place: what a call that waits shows, to whom, and the keys that decide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.actions import ACTIONS, Mode
from antiphon.keymap import KeyMap
from antiphon.render.view import permission_question
from antiphon.screens.modals import REASON_ASKED
from antiphon.screens.questions import JUST_APPEARED, NOTHING_TO_DECIDE, READ_SECONDS
from antiphon_kernel.providers.events import End, ToolCallEvent
from antiphon_kernel.types.roles import AccessRole
from tests.app.opened import Opened, World, opened, world
from tests.clocks import ManualClock
from tests.waiting import until

ASKED = "Run this with your rights?  o once · O always · n no"

ASKED_BESIDE_MESSAGE = "Run this with your rights?  Esc, then o once · O always · n no"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, asks=True) as one:
        yield one


@pytest.fixture
async def there(here: World, clock: ManualClock) -> AsyncIterator[Opened]:
    async with opened(here, clock=clock) as one:
        yield one


async def ask(here: World, there: Opened) -> None:
    """Let aria call the shell in answer to a message of amy, and choose the call."""
    await there.send("Touch it.")
    here.aria.run("touch ran")
    await there.sees(ASKED_BESIDE_MESSAGE)
    await there.press("escape", mode=Mode.NAVIGATE)
    await until(lambda: there.screen.situation.asks, "the call is chosen")
    await there.sees(ASKED)


async def decide(there: Opened, clock: ManualClock, key: str) -> None:
    """Press a key when the question has been there for long enough to be read."""
    await there.pilot.pause()
    clock.ms += round(1_000 * READ_SECONDS)
    await there.press(key)


async def test_asked_call_shows_what_would_run_and_runs_once_by_a_key_when_it_can_have_been_read(
    here: World, there: Opened, clock: ManualClock
) -> None:
    cell = await here.cell("another cell")
    await ask(here, there)
    assert there.shows("$ touch ran")
    assert any(line.rstrip().endswith("asks") for line in there.lines)
    await until(lambda: "aria asks" in there.lines[0], lambda: there.lines[0])
    assert not has_run(here)
    clock.ms += round(1_000 * READ_SECONDS) - 1
    await there.press("o", "O", "n")
    await until(lambda: there.screen.frame.notice.hint == JUST_APPEARED, "a hint")
    assert here.kernel.tool_permissions.undecided
    await there.press("Z")
    await there.hint("The call has printed nothing yet that could be folded.")
    # From each other place it says what leads to its keys.
    await there.press("k")
    await there.sees("your rights?  In this cell: o once")
    there.screen.area.edit(cell)
    await there.mode(Mode.EDIT)
    await there.sees("your rights?  In this cell: o once")
    await there.press("escape", "i", mode=Mode.WRITE)
    await there.sees(ASKED_BESIDE_MESSAGE)
    await there.press("up")
    await until(lambda: there.screen.situation.asks, "the call is chosen")
    clock.ms += 1
    await there.press("o")
    await until(lambda: has_run(here), "it has run")
    await go_on(here)
    assert not there.shows(ASKED)
    assert not here.kernel.tool_permissions.rules


async def go_on(here: World) -> None:
    here.aria.end()
    await here.turns.wait_idle()


def has_run(here: World) -> bool:
    return (here.folder / "ran").exists()


def test_words_below_a_call_name_the_keys_of_the_actions() -> None:
    keys = {one.name: one.shown_keys() for one in ACTIONS}
    words = KeyMap().name_keys(permission_question("amy", is_own=True, may_decide=True))
    for name, word in {"allow_once": "once", "allow_always": "always", "deny": "no"}.items():
        assert f"{keys[name]} {word}" in words


async def test_up_goes_to_the_call_that_waits_a_decision_to_the_next_and_always_is_a_rule(
    here: World, there: Opened, clock: ManualClock
) -> None:
    await there.send("Touch both.")
    for name in ("ran", "also"):
        here.aria.say(ToolCallEvent(f"call-{name}", "shell", {"command": f"touch {name}"}))
    here.aria.say(End("tool_use"))
    await there.sees(ASKED_BESIDE_MESSAGE)
    await there.sees("↑ decide")
    await there.send("!true")
    await there.sees("$ true")
    await there.press("up")
    await until(lambda: there.screen.situation.asks, "a call is chosen")
    await decide(there, clock, "o")
    await until(lambda: has_run(here), "it has run")
    await until(lambda: there.screen.situation.asks, "the other one is chosen")
    assert not here.kernel.tool_permissions.rules
    await decide(there, clock, "O")
    await until((here.folder / "also").exists, "it has run")
    await until(lambda: here.kernel.tool_permissions.rules, "there is a rule")
    await go_on(here)
    await there.press("i")
    await there.sees("↑ navigate")


async def test_no_asks_why_and_the_model_is_told_unless_it_is_escaped(
    here: World, there: Opened, clock: ManualClock
) -> None:
    await ask(here, there)
    await decide(there, clock, "n")
    await there.sees(REASON_ASKED)
    await there.press("escape")
    await until(lambda: not there.shows(REASON_ASKED), "the question is gone")
    assert there.shows(ASKED)
    assert here.kernel.tool_permissions.undecided
    await there.press("n")
    await there.sees(REASON_ASKED)
    await there.type("Not there.")
    await there.sees("Enter say no")
    assert there.shows(REASON_ASKED) and not there.shows("NAVIGATE")
    await there.press("enter")
    await there.sees("Not run: amy said no: Not there.")
    await go_on(here)
    assert not has_run(here)


async def test_people_who_may_not_decide_see_who_may(here: World, there: Opened) -> None:
    ed = await here.kernel.principal("ed")
    await here.kernel.members.give_role(ed, AccessRole.EDITOR)
    await ask(here, there)
    async with opened(here, as_name="ed") as theirs:
        await theirs.sees("Waits until amy or an owner decides")
        await theirs.sees("aria waits")
        assert "writes" not in theirs.app.title
        await theirs.press("escape", mode=Mode.NAVIGATE)
        assert not theirs.screen.situation.asks
        await theirs.press("o")
        theirs.screen.call_action("allow_once")
        await theirs.sees(NOTHING_TO_DECIDE)
    assert here.kernel.tool_permissions.undecided
    assert not has_run(here)
