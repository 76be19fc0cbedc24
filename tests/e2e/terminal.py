"""A real terminal for tests: a process on a pseudo terminal, and a screen that shows it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyte

from tests.fork_server import can_fork, fork_in_terminal
from tests.waiting import PATIENCE

KEYS: Final[Mapping[str, str]] = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
    "space": " ",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "delete": "\x1b[3~",
    "ctrl+end": "\x1b[1;5F",
    "ctrl+home": "\x1b[1;5H",
    "ctrl+up": "\x1b[1;5A",
    "ctrl+down": "\x1b[1;5B",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f6": "\x1b[17~",
} | {f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"}

# Takes the terminal on its input as the controlling one, then becomes the program.
_LOGIN: Final = (
    "import fcntl, os, sys, termios;"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)

UNKNOWN: Final = re.compile(rb"\x1b\[[<=>][0-9;:]*[@-~]|\x1b\[\?[0-9;]*\$p|\x1bP.*?\x1b\\", re.S)
"""Queries and modes that the screen emulator does not know, and would print."""

_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[<=>?]?[0-9;:]*\$?|P[^\x1b]*\x1b?)?\Z", re.S)


def shows_words(text: str) -> bool:
    """Whether some of a numbered recording is on the screen: its beginning soon is above that."""
    return bool(re.search(r"word\d{4}", text))


def start_in_terminal(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    cols: int = 80,
    rows: int = 24,
    forks: bool = False,
    before: str = "",
) -> tuple[int, subprocess.Popen[bytes]]:
    """Start a program in a terminal of its own; return the other end of it, and the process.

    Args:
        forks: it is forked if it can be: it starts more quickly than for people.
        before: Python that the app executes first.
    """
    master, slave = os.openpty()
    set_size(master, cols, rows)
    env = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": os.defpath, **env}
    if forks and can_fork(argv, env):
        process = fork_in_terminal(argv, slave, cwd=cwd, env=env, before=before)
    else:
        if before:
            code = f"{before}\nfrom antiphon.__main__ import main\nmain()"
            argv = [sys.executable, "-c", code, *argv[1:]]
        process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _LOGIN, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    os.close(slave)
    return master, process


def set_size(terminal: int, cols: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Terminal:
    """One program in one terminal.

    Args:
        argv: the program and its arguments.
        env: its whole environment; TERM and the locale are added.
        forks: whether it may be forked, and so have another command line than this one.
        before: Python that the app executes first.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cols: int = 80,
        rows: int = 24,
        cwd: Path | None = None,
        forks: bool = True,
        before: str = "",
    ) -> None:
        self._screen = pyte.Screen(cols, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._ended = False
        self._pending = b""
        self.output = bytearray()
        """Every byte that was written to the terminal."""
        self._wake, self._woken = os.pipe()
        self.started = time.monotonic()
        self._master, self.process = start_in_terminal(
            argv, env=env, cwd=cwd, cols=cols, rows=rows, forks=forks, before=before
        )
        self._reader = threading.Thread(target=self._read, name="terminal reader", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What is to be seen

    def screen(self) -> list[str]:
        """The lines of the screen, trailing blanks removed."""
        with self._changed:
            return self._lines()

    @property
    def text(self) -> str:
        return "\n".join(self.screen())

    def wait_for(
        self, wanted: str | Callable[[str], bool], timeout: float = PATIENCE, *, what: str = ""
    ) -> str:
        """Wait until the text is on the screen, or the predicate holds of it; returns the screen.

        Raises:
            AssertionError: if that does not happen in time, or the program ends before.
        """

        def holds(text: str) -> bool:
            return wanted in text if isinstance(wanted, str) else wanted(text)

        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                text = "\n".join(self._lines())
                if holds(text):
                    return text
                left = deadline - time.monotonic()
                if left <= 0 or self._ended:
                    break
                self._changed.wait(left)
        reason = "the program ended" if self._ended else f"not within {timeout} s"
        raise AssertionError(f"{what or wanted!r}: {reason}; the screen is\n{text}")

    # What one can do

    def type(self, text: str) -> None:
        """Type text; a newline is what Ctrl+J sends."""
        data = text.encode()
        while data:
            data = data[os.write(self._master, data) :]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.type(KEYS.get(key, key))

    def edit_last_cell(self) -> None:
        """Go from the composer into the last cell."""
        self.press("up")
        self.wait_for("NAVIGATE")
        self.press("enter")
        self.wait_for("EDIT")

    def quit(self) -> None:
        """Leave the app, which ends well."""
        self.press("ctrl+q")
        assert self.wait_for_end() == 0

    def resize(self, cols: int, rows: int) -> None:
        with self._changed:
            self._screen.resize(rows, cols)
            set_size(self._master, cols, rows)

    def wait_for_end(self, timeout: float = PATIENCE) -> int:
        """The exit code, once the program has ended and all it printed is on the screen."""
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        return code

    def hang_up(self) -> None:
        """The connection is lost: the terminal goes away under the program."""
        os.killpg(self.process.pid, signal.SIGHUP)

    def disconnect(self) -> None:
        """Close the terminal as a window is closed: its leader is signalled, reading it ends."""
        os.close(self._woken)
        self._reader.join(PATIENCE)
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """End whatever still runs in this terminal."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self._master >= 0:
            os.close(self._master)
            os.close(self._woken)
        os.close(self._wake)

    def _lines(self) -> list[str]:
        """Read the screen in a third of the time that its `display` takes."""
        rows, columns = range(self._screen.lines), range(self._screen.columns)
        buffer = self._screen.buffer
        return ["".join([buffer[row][at].data for at in columns]).rstrip() for row in rows]

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master, self._wake], [], [])
            try:
                data = os.read(self._master, 65536) if self._wake not in ready else b""
            except OSError:  # Linux: the last program has closed its side.
                data = b""
            with self._changed:
                if not data:
                    self._ended = True
                    self._changed.notify_all()
                    return
                self.output += data
                self._feed(data)
                self._changed.notify_all()

    def _feed(self, data: bytes) -> None:
        data = UNKNOWN.sub(b"", self._pending + data)
        unfinished = _UNFINISHED.search(data)
        cut = unfinished.start() if unfinished else len(data)
        self._pending = data[cut:]
        self._stream.feed(data[:cut])
