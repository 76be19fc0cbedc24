"""The demo in real terminals: a model streams, scripted or real, and people type inside it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import string
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyte
import pytest

from antiphon_kernel.client.address import lock_holder
from antiphon_kernel.client.discovery import kernel_at
from antiphon_kernel.providers.opening import packaged_model
from antiphon_kernel.turns.models import demo_recordings
from antiphon_kernel.types.constants import DEMO_PROJECT
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import KEYS, Terminal, shows_words
from tests.local_model import needs_local_model
from tests.recordings import Recorded, numbered_recording
from tests.waiting import wait_until

TYPED = "zebracrossing"


def answer_of(machine: Machine, data: Path, *, status: str) -> dict[str, Any] | None:
    """The model's text block, if it is there and has this status."""
    listed = machine.call(data, "block.list", role="model", kind="text")["blocks"]
    for block in listed:
        if block["status"] == status:
            return machine.call(data, "block.read", block_id=block["block_id"])
    return None


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Longer than a test takes; a line in three seconds, so that what is typed stays to be seen."""
    return numbered_recording(tmp_path / "aria.jsonl", model="aria", words=1_000, pause_ms=400)


def in_tmux() -> tuple[str, ...]:
    """A program that runs antiphon in tmux, which ends with its terminal; without tmux, bare."""
    if (tmux := shutil.which("tmux")) is None:
        return (ANTIPHON,)
    name = f"antiphon-{os.getpid()}"
    ends = ("start-server", ";", "set", "-g", "destroy-unattached", "on", ";")
    return (tmux, "-L", name, "-f", os.devnull, *ends, "new-session", ANTIPHON)


def test_demo_in_two_terminals_shares_a_streaming_block_which_outlives_a_killed_kernel(
    machine: Machine, recorded: Recorded
) -> None:
    first = machine.terminal("demo", "--play", str(recorded.path))
    first.wait_for("WRITE", what="the first frame")
    first.wait_for(shows_words, what="the stream")

    second = machine.terminal("join", program=in_tmux())
    first.wait_for("guest", what="the guest's name")
    second.wait_for(shows_words, what="the stream in the second terminal")

    first.edit_last_cell()
    typed = ""
    for end in (1, 2, 6, len(TYPED)):
        first.type(TYPED[len(typed) : end])
        typed = TYPED[:end]
        first.wait_for(typed)
        second.wait_for(typed, what="a keystroke in the second terminal")
        if end == 2:
            first.resize(100, 20)

    before = machine.kernel()
    data = before.data
    on_disk = wait_until(
        lambda: (answer_of(machine, data, status="running") or {}).get("content"),
        "the running block",
    )
    assert TYPED in on_disk
    os.kill(before.pid, signal.SIGKILL)

    def comes_back() -> bool:
        address = kernel_at(data)
        return address is not None and address.pid != before.pid

    wait_until(comes_back, "the kernel again")
    answer = wait_until(lambda: answer_of(machine, data, status="error"), "an ended block")
    assert answer["stop_reason"] == "interrupted"
    assert answer["content"].count(TYPED) == 1
    streamed = answer["content"].replace(TYPED, "")
    assert recorded.text.startswith(streamed)
    assert len(streamed) >= len(on_disk.replace(TYPED, ""))

    first.type("again")
    for terminal in (first, second):
        terminal.wait_for(TYPED + "again", what="typing goes on")
    read = partial(machine.call, data, "block.read", block_id=answer["block_id"])
    wait_until(lambda: "again" in read()["content"], "what was typed after the reconnect")
    first.press("escape")
    first.wait_for("NAVIGATE")

    last = re.findall(r"word\d{4}", streamed)[-1]
    for terminal in (first, second):
        terminal.press("ctrl+end")
        terminal.wait_for(last)
        terminal.quit()
    assert str(data) in first.text.replace("\n", ""), "where the demo is kept"


def test_aria_and_a_person_change_a_file_that_is_there_when_the_demo_is_opened_again(
    machine: Machine,
) -> None:
    terminal = machine.terminal("demo", "--play", str(demo_recordings()[1]), "--speed", "60")
    terminal.wait_for("press F6")
    terminal.press("f6")
    terminal.wait_for("Open a file")
    terminal.type("choirs")
    terminal.wait_for("test_choirs.py")
    terminal.press("enter")
    terminal.wait_for("choirs.py   ● ")
    terminal.press("enter")
    terminal.wait_for("EDIT")
    terminal.type("# Sing it slowly.")
    terminal.press("enter")
    terminal.wait_for("All of us do.", what="the last edit of aria")
    data = machine.kernel().data
    file = data / DEMO_PROJECT / "choirs.py"
    wait_until(lambda: "All of us do." in file.read_text(), "what was written is on disk")
    typed = "# Sing it slowly.\n"
    wait_until(lambda: file.read_text().startswith(typed), "what was typed is on disk")
    assert "return line % choirs" in file.read_text()
    terminal.press("escape")
    terminal.wait_for("NAVIGATE")
    terminal.quit()
    assert str(file.parent) in terminal.text.replace("\n", "")
    wait_until(lambda: lock_holder(data) is None, "its kernel has ended")

    again = machine.call(data, "file.open", path="choirs.py")
    assert machine.call(data, "block.read", block_id=again["block_id"])["content"].startswith(typed)
    assert not machine.data.exists(), "the folder in which it was started is left alone"


CHARACTERS: Final = int(os.environ.get("ANTIPHON_KEYS", "60"))
"""Characters that each of two people types at least."""

SEED: Final = int(os.environ.get("ANTIPHON_SEED", "1"))

COMBINING: Final = "".join(map(chr, range(0x0300, 0x0340)))
ALPHABETS: Final = (
    (string.ascii_uppercase[:13] + string.punctuation, COMBINING[:32], (0x4E00, 0x9FFF)),
    (string.ascii_uppercase[13:], COMBINING[32:], (0xAC00, 0xD7A3)),
)
"""Characters that each of two people types: narrow, combining and wide ones."""

WRITTEN_AND_TAKEN_BACK: Final = "=" + KEYS["backspace"]
"""A key that is text and one that is not: what follows has to wait for it."""


class Typist:
    """A person who types at random, without looking, and in the end knows what."""

    def __init__(self, terminal: Terminal, person: int) -> None:
        self.alphabet = set("".join(ALPHABETS[person][:2]))
        self._terminal = terminal
        self._narrow, self._combining, self._wide = ALPHABETS[person]
        self._random = random.Random(SEED + person)

    def has_written(self, character: str) -> bool:
        return character in self.alphabet or self._wide[0] <= ord(character) <= self._wide[1]

    def burst(self) -> str:
        """Type some characters at once."""
        text = "".join(self._characters(self._random.choice((1, 1, 2, 5, 20, 80))))
        self._terminal.type(text + WRITTEN_AND_TAKEN_BACK * self._random.choice((0, 0, 0, 1)))
        return text

    def _characters(self, count: int) -> Iterator[str]:
        yield self._random.choice(self._narrow)
        for _ in range(count - 1):
            wide = chr(self._random.randint(*self._wide))
            one, other = self._random.choice(self._narrow), self._random.choice(self._combining)
            yield self._random.choice((one, one, wide, other))


def test_bursts_of_two_people_in_a_cell_that_streams_lose_no_character(
    machine: Machine, tmp_path: Path
) -> None:
    recorded = numbered_recording(tmp_path / "aria.jsonl", model="aria", words=50, pause_ms=40)
    own = machine.terminal("demo", "--play", str(recorded.path))
    own.wait_for(shows_words)
    other = machine.terminal("join")
    other.wait_for("word0")
    for terminal, place in ((own, "ctrl+home"), (other, "end")):
        terminal.edit_last_cell()
        terminal.press("ctrl+home", place)
    first, second = Typist(own, 0), Typist(other, 1)
    in_cell = by_other = ""
    while len(in_cell) < CHARACTERS // 2:
        in_cell += first.burst()
        by_other += second.burst()
    own.press("escape", "i")
    message = "A"  # no command, whatever comes next
    own.type(message)
    while len(message) < CHARACTERS // 2:
        message += first.burst()
        by_other += second.burst()
    message += "A"  # no backslash before Enter
    own.type("A")
    own.press("enter")

    data = machine.kernel().data

    def read(role: str) -> str:
        blocks = machine.call(data, "block.list", role=role, kind="text")["blocks"]
        if not blocks:
            return ""
        return str(machine.call(data, "block.read", block_id=blocks[0]["block_id"])["content"])

    wait_until(lambda: read("user") == message, "the message as it was typed")

    def is_all_there() -> bool:
        cell = read("model")
        mine = "".join(filter(first.has_written, cell))
        theirs = "".join(filter(second.has_written, cell))
        rest = (one for one in cell if not (first.has_written(one) or second.has_written(one)))
        return (mine, theirs, "".join(rest)) == (in_cell, by_other, recorded.text)

    wait_until(is_all_there, "the cell with everything in it, once and in order")


@needs_local_model
def test_local_demo_asks_the_small_model(machine: Machine) -> None:
    terminal = machine.terminal("demo", "--local")
    terminal.wait_for("live")
    data = machine.kernel().data
    stopped = wait_until(lambda: machine.call(data, "turn.interrupt")["stopped"], "its turn")
    assert stopped == [packaged_model().name]
    terminal.quit()


def test_demo_plays_a_persons_keys_without_a_terminal_into_a_cast(
    machine: Machine, tmp_path: Path
) -> None:
    recording = tmp_path / "run.jsonl"
    recording.write_text(
        '{"person": true}\n'
        '{"at_ms": 0, "type": "type", "text": "@bela sing,\\nnow"}\n'
        '{"at_ms": 0, "type": "keys", "keys": ["enter"]}\n'
        '{"at_ms": 0, "type": "see", "text": "la la"}\n'
        '{"at_ms": 0, "type": "type", "text": "Encore 😀"}\n'
        '{"model": "aria"}\n{"at_ms": 0, "type": "text", "text": "I was not asked."}\n'
        '{"model": "bela"}\n{"at_ms": 500, "type": "text", "text": "la la"}\n'
    )
    cast, svg = tmp_path / "out.cast", tmp_path / "out.svg"
    machine.succeed(
        *("demo", "--play", str(recording), "--speed", "10", "--size", "60x16"),
        *("--cast", str(cast), "--svg", str(svg)),
    )
    header, *events = map(json.loads, cast.read_text().splitlines())
    assert (header["term"]["cols"], header["term"]["rows"]) == (60, 16)
    screen = pyte.Screen(60, 16)
    stream = pyte.Stream(screen)
    for _, _, text in events:
        stream.feed(text)
    shown = [line.strip(" │┃") for line in screen.display]
    seen = ("@bela sing,", "now", "la la")
    assert [one for one in shown if one in seen] == list(seen)
    assert any("Encore 😀" in line for line in shown)
    assert not any("I was not asked" in line for line in shown)
    assert "Encore 😀" in svg.read_text()

    recording.write_text('{"person": true}\n{"at_ms": 0, "type": "song"}\n')
    failed = machine.run("demo", "--play", str(recording), "--cast", str(tmp_path / "none.cast"))
    assert failed.returncode == 3
    assert f"{recording}:2: expected `type`, one of type, keys, see" in failed.stderr
    assert not (tmp_path / "none.cast").exists()
