"""A recording of a terminal (asciicast, version 2): the demo's first minute, with scripted keys."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.machine import ANTIPHON
from tests.e2e.terminal import Terminal

FRAME_SECONDS: Final = 0.1
"""Times are multiples of it."""

FRAME_END: Final = b"\x1b[?2026l"
"""Ends a frame of a program that has been told that the terminal waits for it."""

_ASKED: Final = b"\x1b[?2026$p"
_ANSWER: Final = "\x1b[?2026;2$y"


@dataclass(frozen=True, slots=True)
class Cast:
    """Output that a terminal was sent, with its times."""

    cols: int
    rows: int
    events: tuple[tuple[float, str], ...]
    """Seconds since the start, and text."""

    def dumps(self) -> str:
        """Return the file."""
        head = {"version": 2, "width": self.cols, "height": self.rows, "title": "antiphon"}
        lines = [head, *([at, "o", text] for at, text in self.events)]
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)

    @classmethod
    def loads(cls, text: str) -> Cast:
        """Read the file."""
        head, *events = map(json.loads, text.splitlines())
        return cls(head["width"], head["height"], tuple((at, data) for at, _, data in events))


class Recorder:
    """Keeps what one terminal is sent, frame by frame."""

    def __init__(self) -> None:
        self.terminal: Terminal | None = None
        self._pending = b""
        self._frames: list[tuple[float, bytes]] = []

    def listen(self, data: bytes) -> None:
        """Take notice of output."""
        if _ASKED in data and self.terminal is not None:
            self.terminal.type(_ANSWER)
        self._pending += data
        end = self._pending.rfind(FRAME_END)
        if end >= 0:
            end += len(FRAME_END)
            self._frames.append((time.monotonic(), self._pending[:end]))
            self._pending = self._pending[end:]

    def cast(self, start: float, end: float) -> Cast:
        """Return what was sent; what came before `start` comes at once."""
        events: dict[float, str] = {}
        for moment, data in self._frames:
            if moment <= end:
                frame = max(0, round((moment - start) / FRAME_SECONDS))
                at = round(frame * FRAME_SECONDS, 1)
                events[at] = events.get(at, "") + data.decode()
        events.setdefault(round(end - start, 1), "")
        return Cast(80, 24, tuple(events.items()))


def record_demo() -> Cast:
    """Play the demo's first minute: mend a typo, write a sentence, be joined by somebody."""
    with tempfile.TemporaryDirectory() as scratch, _data() as data:
        recorder, home = Recorder(), Path(scratch)
        env = _environment(home)
        command = [ANTIPHON, "demo", "--data", str(data)]
        with Terminal(command, env=env, cwd=home, listen=recorder.listen) as first:
            recorder.terminal = first
            first.wait_for("WRITE")
            start = time.monotonic()
            _mend(first)
            with Terminal([ANTIPHON, "join"], env=env, cwd=home) as second:
                _be_joined(first, second)
                end = time.monotonic()
                for one in (second, first):
                    one.press("ctrl+q")
                    one.wait_for_end()
        return recorder.cast(start, end)


def _mend(first: Terminal) -> None:
    first.wait_for("chirs should be choirs")
    _pause(2.5)
    first.press("up")
    _pause(0.8)
    first.press("enter")
    first.wait_for("EDIT")
    _pause(1.2)
    first.press("o")
    _pause(1.5)
    first.press("end")
    _type(first, " Like you and me.")
    _pause(2)
    first.press("escape")
    _pause(1)
    first.press("b")
    _pause(3)
    first.press("b")
    _pause(0.5)


def _be_joined(first: Terminal, second: Terminal) -> None:
    second.wait_for("aria")
    first.wait_for("guest")
    _pause(1)
    second.press("up", "enter")
    second.wait_for("EDIT")
    second.press("down", "down", "down", "end")
    _pause(0.5)
    first.press("ctrl+end")
    _pause(1)
    _type(second, " A third hand was here.")
    _pause(4)


def _type(terminal: Terminal, text: str) -> None:
    for letter in text:
        terminal.type(letter)
        _pause(0.09)


def _pause(seconds: float) -> None:
    """As a person who reads."""
    time.sleep(seconds)


@contextlib.contextmanager
def _data() -> Iterator[Path]:
    """Yield a folder for the demo whose path, which is seen, is always the same."""
    data = Path(tempfile.gettempdir()) / "antiphon-demo"
    data.mkdir(mode=0o700)
    try:
        yield data
    finally:
        shutil.rmtree(data)


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of somebody with a home of their own."""
    return {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "SHELL": "/bin/sh",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "XDG_RUNTIME_DIR": str(home),
    }
