"""Bell and notification for a person who looks elsewhere."""

from __future__ import annotations

import pytest
from textual import events

from antiphon.attention import AWAY_SECONDS, Attention
from tests.app.opened import Opened, World
from tests.waiting import until


class Seconds:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_attention_without_focus_reports_ends_some_seconds_after_the_last_key() -> None:
    clock = Seconds()
    attention = Attention(clock=clock, in_tmux=False)
    seen = [attention.is_here]
    clock.now += AWAY_SECONDS
    seen.append(attention.is_here)
    attention.key()
    seen.append(attention.is_here)
    assert seen == [True, False, True]


def test_attention_follows_the_reports_of_a_terminal_that_makes_them() -> None:
    clock = Seconds()
    attention = Attention(clock=clock, in_tmux=False)
    attention.focus(False)
    seen = [attention.is_here]
    attention.focus(True)
    clock.now += 10 * AWAY_SECONDS
    seen.append(attention.is_here)
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("in_tmux", "sent"), [(True, "\a"), (False, "\x1b]9;aria ended\x1b\\")], ids=["tmux", "bare"]
)
def test_call_is_a_bell_in_tmux_and_a_notification_outside(in_tmux: bool, sent: str) -> None:
    attention = Attention(in_tmux=in_tmux)
    assert attention.call("aria ended") == ""
    attention.focus(False)
    assert attention.call("aria ended") == sent


def test_call_with_control_characters_ends_no_sequence() -> None:
    attention = Attention(in_tmux=False)
    attention.focus(False)
    sent = attention.call("a\x1b\\b\x07c\x9c\nd")
    assert not set(sent[4:-2]) & set("\x1b\x07\x9c\n")


async def test_turn_that_ends_calls_only_a_person_who_looks_elsewhere(
    here: World, there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    await there.live()
    sent: list[str] = []
    driver = there.app._driver  # noqa: SLF001  the terminal itself
    assert driver is not None
    monkeypatch.setattr(driver, "write", sent.append)

    async def turn() -> None:
        asked = len(here.aria.prompts)
        await there.type("hi")
        await there.press("enter")
        await until(lambda: len(here.aria.prompts) > asked, "the turn")
        await there.sees("aria writing")

    async def ended() -> None:
        here.aria.end()
        await until(lambda: not there.shows("aria writing"), "its end")

    await turn()
    there.app.post_message(events.AppFocus())
    await ended()
    assert not [one for one in sent if "ended" in one or one == "\a"]
    await turn()
    there.app.post_message(events.AppBlur())
    await ended()
    await until(lambda: any("aria ended" in one or one == "\a" for one in sent), "the call")
