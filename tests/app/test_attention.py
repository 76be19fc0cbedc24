"""Title, bell and notification for a person who looks elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual import events

from antiphon.attention import AWAY_SECONDS, MOST_COLUMNS, Attention, terminal_title
from antiphon.locations import config_folder
from antiphon.settings import SETTINGS_FILE
from antiphon.widgets.status import Participant
from tests.app.opened import Opened, World, opened, world
from tests.clocks import ManualClock
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


def sent_by(there: Opened, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the terminal is sent from now on."""
    sent: list[str] = []
    driver = there.app._driver  # noqa: SLF001  the terminal itself
    assert driver is not None
    monkeypatch.setattr(driver, "write", sent.append)
    return sent


def calls(sent: list[str], text: str) -> list[str]:
    return [one for one in sent if text in one or one == "\a"]


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, asks=True) as one:
        yield one


async def ask_behind_the_back(asking: World, there: Opened) -> None:
    await there.send("Touch it.")
    await until(lambda: asking.aria.prompts, "the turn")
    there.app.post_message(events.AppBlur())
    asking.aria.run("touch ran")
    await there.sees("aria asks")
    await title_is(there, "● antiphon: default · aria asks")


async def test_asked_call_calls_a_person_who_looks_elsewhere(
    asking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(asking) as there:
        sent = sent_by(there, monkeypatch)
        await ask_behind_the_back(asking, there)
        await until(lambda: calls(sent, "aria asks to run a tool"), "the call")


async def test_nobody_is_called_without_notifications(
    asking: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config_folder() / SETTINGS_FILE).write_text("notifications = false\n")
    clock = ManualClock()
    async with opened(asking, clock=clock) as there:
        sent = sent_by(there, monkeypatch)
        await ask_behind_the_back(asking, there)
        await there.press("escape")
        await until(lambda: there.screen.situation.asks, "the call is chosen")
        clock.ms += 1_000
        await there.press("o")
        asking.aria.end()
        await until(lambda: not there.shows("aria asks"), "the end of the turn")
        await there.pilot.pause()
        assert not calls(sent, "aria asks") and not calls(sent, "ended")


async def test_title_tells_of_turns_and_other_contexts_and_an_end_calls_who_looks_elsewhere(
    here: World, there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    await there.live()
    await title_is(there, "antiphon: default")
    sent = sent_by(there, monkeypatch)

    async def turn() -> None:
        asked = len(here.aria.prompts)
        await there.send("hi")
        await until(lambda: len(here.aria.prompts) > asked, "the turn")
        await there.sees("aria writing")
        await title_is(there, "◐ antiphon: default · aria writes")

    async def ended() -> None:
        here.aria.end()
        await until(lambda: not there.shows("aria writing"), "its end")
        await title_is(there, "antiphon: default")

    await turn()
    there.app.post_message(events.AppFocus())
    await ended()
    assert not calls(sent, "ended")
    await turn()
    there.app.post_message(events.AppBlur())
    await ended()
    await until(lambda: calls(sent, "aria ended"), "the call")
    made = await here.call("context.create", label="notes")
    there.screen.open_context(made["context_id"])
    await title_is(there, "antiphon: notes")
    await there.live()
    await here.cell("news")
    await there.screen.contexts.fetch()
    await title_is(there, "antiphon: notes · 1 unread elsewhere")


def model(name: str, doing: str = "", *, streaming: bool = False) -> Participant:
    return Participant(
        principal=name,
        name=name,
        colour=0,
        is_me=False,
        is_model=True,
        doing=doing,
        streaming=streaming,
        block=None,
        role="",
    )


ASKING = model("aria", "asks", streaming=True)
WRITING = model("bela", "writing", streaming=True)


@pytest.mark.parametrize(
    ("people", "unread", "title"),
    [
        ((), 0, "antiphon: notes"),
        ((model("aria"),), 2, "antiphon: notes · 2 unread elsewhere"),
        ((WRITING,), 0, "◐ antiphon: notes · bela writes"),
        ((WRITING, ASKING), 0, "● antiphon: notes · aria asks"),
        ((WRITING, WRITING), 1, "◐ antiphon: notes · 2 models write · 1 unread elsewhere"),
    ],
    ids=["rest", "unread", "writes", "asks", "several"],
)
def test_title_names_context_and_state(
    people: tuple[Participant, ...], unread: int, title: str
) -> None:
    assert terminal_title("notes", people, unread) == title


def test_title_of_hostile_names_is_one_bounded_row_without_controls() -> None:
    hostile = "a\x1b]0;x\x07\x9c\u202eb\n" * 40
    title = terminal_title(hostile, [model(hostile, "asks")], 10**9)
    assert title.isprintable()
    assert not set(title) & set("\x1b\x07\x9c\u202e\n")
    assert cell_len(title) <= MOST_COLUMNS


async def title_is(there: Opened, title: str) -> None:
    await until(lambda: there.app.title == title, lambda: f"{title!r}, it is {there.app.title!r}")
