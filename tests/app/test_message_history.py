"""The messages that a person has sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon import message_history
from antiphon.message_history import MessageHistory
from tests.app.opened import Opened, World, opened
from tests.waiting import until


def test_history_holds_each_message_once_latest_first(tmp_path: Path) -> None:
    history = MessageHistory(tmp_path, "kernel")
    for text in ("one", "two\nlines", "one", " "):
        history.add(text)
    assert MessageHistory(tmp_path, "kernel").messages() == ("one", "two\nlines")
    assert MessageHistory(tmp_path, "another").messages() == ()
    (file,) = tmp_path.rglob("*.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600


def test_history_file_with_damage_gives_the_rest(tmp_path: Path) -> None:
    history = MessageHistory(tmp_path, "kernel")
    history.add("one")
    (file,) = tmp_path.rglob("*.jsonl")
    file.write_bytes(file.read_bytes() + b'"tw\n\xff\n7\n')
    history.add("three")
    assert history.messages() == ("three", "one")


def test_history_that_is_large_loses_its_older_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_history, "LARGEST", 100)
    history = MessageHistory(tmp_path, "kernel")
    for number in range(50):
        history.add(f"message {number}")
    (file,) = tmp_path.rglob("*.jsonl")
    assert file.stat().st_size <= 100
    assert history.messages()[0] == "message 49"


@pytest.fixture
async def sent(here: World, there: Opened) -> Opened:
    """The app in which two messages were sent."""
    await there.press("ctrl+r")
    await there.sees("There is no message of yours yet.")
    for text in ("first message", "second one"):
        await there.send(text)
        await until(lambda: there.message == "", "sent")
    return there


async def test_ctrl_r_again_goes_to_the_message_before_and_history_is_there_at_the_next_start(
    here: World, sent: Opened
) -> None:
    await sent.press("ctrl+r", "ctrl+r", "enter")
    assert sent.message == "first message"
    await sent.press("ctrl+r", "ctrl+r")
    await sent.sees("There is no other message of yours")
    await sent.press("ctrl+u", "s", "ctrl+r")
    assert sent.screen.composer.completions.is_open
    await sent.press("escape")
    assert (sent.message, sent.screen.composer.completions.is_open) == ("s", False)
    await sent.press("backspace")
    async with opened(here) as there:
        await there.type("FIR")
        await there.press("ctrl+r")
        await there.sees("first message")
        await there.send("s")
        assert there.message == "first message"
