"""Typing in real terminals, as the kernel has it in the end."""

from __future__ import annotations

import os
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.machine import Machine
from tests.e2e.terminal import KEYS, Terminal, shows_words
from tests.recordings import numbered_recording
from tests.waiting import wait_until

CHARACTERS: Final = int(os.environ.get("ANTIPHON_KEYS", "1000"))
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
    recorded = numbered_recording(tmp_path / "aria.jsonl", model="aria", words=400, pause_ms=8)
    own = machine.terminal("demo", "--play", str(recorded.path))
    own.wait_for(shows_words)
    other = machine.terminal("join")
    other.wait_for("word0")
    for terminal, place in ((own, "ctrl+home"), (other, "end")):
        terminal.press("up")
        terminal.wait_for("NAVIGATE")
        terminal.press("enter")
        terminal.wait_for("EDIT")
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
