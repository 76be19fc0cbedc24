"""A tmux server of its own, and programs in its windows."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.waiting import wait_until

TMUX: Final = shutil.which("tmux")

needs_tmux = pytest.mark.skipif(TMUX is None, reason="tmux is not installed (apt-get install tmux)")

CONFIGURATION: Final = "set -g remain-on-exit on\nset -g status off\nset -s escape-time 0\n"


class Tmux:
    """A server, which ends with `close`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        # The path of its socket must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="tmux-"))
        (self._folder / "conf").write_text(CONFIGURATION)
        self._panes = 0

    def run(self, *arguments: str) -> str:
        """Run a command of tmux, which must end well; return what it prints."""
        place = ["-S", str(self._folder / "socket"), "-f", str(self._folder / "conf")]
        done = subprocess.run(
            [TMUX or "", *place, *arguments],
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def open(self, argv: Sequence[str], cwd: Path, cols: int = 80, rows: int = 24) -> TmuxPane:
        """Run a program in a window of its own."""
        self._panes += 1
        name = f"pane{self._panes}"
        size = ("-x", str(cols), "-y", str(rows))
        self.run("new-session", "-d", "-s", name, *size, "-c", str(cwd), "--", *argv)
        return TmuxPane(self, name)

    def close(self) -> None:
        if self._panes:
            self.run("kill-server")
        shutil.rmtree(self._folder)


class TmuxPane:
    """One program, and what its window shows; it stays when the program has ended."""

    def __init__(self, tmux: Tmux, name: str) -> None:
        self._tmux = tmux
        self._name = name

    @property
    def text(self) -> str:
        return self._tmux.run("capture-pane", "-p", "-t", self._name)

    @property
    def pid(self) -> int:
        return int(self._says("pane_pid"))

    def _says(self, variable: str) -> str:
        return self._tmux.run("display", "-p", "-t", self._name, f"#{{{variable}}}").strip()

    def wait_for(self, wanted: str | Callable[[str], bool]) -> None:
        """Wait until the text is in the window, or the predicate holds of what is there."""

        def holds() -> bool:
            text = self.text
            return wanted in text if isinstance(wanted, str) else wanted(text)

        try:
            wait_until(holds, "")
        except AssertionError as error:
            raise AssertionError(f"{wanted!r} is not in the window:\n{self.text}") from error

    def wait_for_end(self) -> None:
        """Wait until the program has ended."""
        wait_until(lambda: self._says("pane_dead") == "1", f"the end of {self._name}")

    def type(self, text: str) -> None:
        self._tmux.run("send-keys", "-t", self._name, "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._tmux.run("send-keys", "-t", self._name, *keys)

    def resize(self, cols: int, rows: int) -> None:
        self._tmux.run("resize-window", "-t", self._name, "-x", str(cols), "-y", str(rows))
