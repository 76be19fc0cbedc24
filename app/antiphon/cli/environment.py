"""`antiphon doctor --env`: what is here for antiphon on this machine, and what each is for."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rich.cells import cell_len
from rich.console import Console

from antiphon.cli.errors import CommandError
from antiphon.cli.opening import require_terminal
from antiphon.locations import project_root

Finding = tuple[str, str | None, str]
"""Something that is looked for, what it is here (None if it is missing), and what it is for."""

_SAMPLES: Final = ("日", "─", "é", "👩‍👩‍👧", "❤️")
_DEVICE: Final = re.compile(rb"\x1b\[\?([\d;]+)c")
_COLUMN: Final = re.compile(rb"\x1b\[\d+;(\d+)R")
_TMUX: Final = {
    "set-clipboard": "copying to the terminal's clipboard: external or on",
    "focus-events": "notifications as soon as you look elsewhere: on",
    "escape-time": "milliseconds until Esc acts: 50 or fewer",
}
PROGRAMS: Final = {
    "git": "what has changed since the last commit, and drift commit --message",
    "rg": "fast search in the files of a project; antiphon reads all of them without it",
    "bash": "!commands and the shell of models, which is sh without it",
    "ssh": "antiphon join ssh://HOST",
    "agg": "antiphon export --format gif",
    "ffmpeg": "antiphon export --format mp4",
}
EXTRAS: Final = {
    "anthropic": ("anthropic", "models of Anthropic"),
    "openai": ("openai", "models of OpenAI, and of servers with its interface, as Ollama"),
    "google": ("google-genai", "models of Google"),
    "agents": ("mcp", "agents, MCP servers, antiphon acp and antiphon mcp"),
    "ssh": ("asyncssh", "antiphon share"),
    "web": ("textual-serve", "antiphon share --web"),
    "postgres": ("psycopg", "antiphon serve --store and antiphon move"),
    "local": ("xllamacpp", "models in a file of this machine"),
}
"""By extra of this package, the library that it brings and what needs it."""


def environment() -> Iterator[Finding]:
    """Yield everything that is looked for; nothing is changed, no kernel is started."""
    python = f"Python {sys.version.split()[0]}, Textual {version('textual')}"
    yield "antiphon", f"{version('antiphon')}, {python}", "reports of faults"
    size = "{}x{}".format(*shutil.get_terminal_size())
    try:
        require_terminal()
        yield "terminal", f"{os.environ['TERM']} {size}", "the app"
    except CommandError as error:
        yield "terminal", None, f"the app, but {error.message}"
    colours = None if "NO_COLOR" in os.environ else Console(force_terminal=True).color_system
    yield "colours", colours, "themes (COLORTERM=truecolor: all of them, NO_COLOR: none)"
    yield "font", "● ◐ │ ▌ ▸ › · ─ é 日", "signs of the app: none may look like a box"
    yield from _answered(_ask_terminal())
    if "TMUX" in os.environ and shutil.which("tmux"):
        asked = "\n".join(f"#{{{name}}}" for name in _TMUX)
        said = _output("tmux", "display-message", "-p", asked)
        for (name, effect), value in zip(_TMUX.items(), said.splitlines(), strict=False):
            yield f"tmux {name}", value, effect
    for name, effect in PROGRAMS.items():
        yield name, shutil.which(name), effect
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    yield "$VISUAL or $EDITOR", editor, "editing a cell in this program"
    for name, (library, effect) in EXTRAS.items():
        found = None
        with suppress(PackageNotFoundError):
            found = f"{library} {version(library)}"
        yield f"antiphon[{name}]", found, effect
    place = str(project_root(Path.cwd()))
    said = _output(sys.executable, "-P", "-m", "antiphon_kernel", "models", "--project", place)
    yield from map(tuple, json.loads(said or "[]"))


def _answered(answer: bytes) -> Iterator[Finding]:
    """Yield what the terminal has said of itself."""
    device = _DEVICE.search(answer)
    columns = [int(one) - 1 for one in _COLUMN.findall(answer)]
    if device is None or len(columns) != len(_SAMPLES):
        effect = "knowing how wide it draws, its keys and its clipboard"
        yield "answers of the terminal", None, effect
        return
    wide = zip(_SAMPLES, columns, strict=True)
    others = " ".join(one for one, column in wide if column != cell_len(one))
    found = f"not as counted: {others}" if others else "as counted"
    yield "width of characters", found, "lines that are not shifted by such characters"
    yield "keys", "extended" if b"\x1b[?0u" in answer else None, "Shift+Enter as Ctrl+J"
    clipboard = "OSC 52" if b"52" in device[1].split(b";") else None
    yield "clipboard", clipboard, "copying; many terminals do it without saying so"


def _ask_terminal() -> bytes:
    """Return what the terminal says of itself; nothing if there is none, or one that cannot."""
    if os.environ.get("TERM", "") in ("", "dumb", "linux", "unknown"):
        return b""
    question = "".join(f"\r{one}\x1b[6n" for one in _SAMPLES) + "\r\x1b[K\x1b[?u\x1b[c"
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return b""
    before, answer = termios.tcgetattr(terminal), b""
    try:
        tty.setcbreak(terminal)
        os.write(terminal, question.encode())
        while not _DEVICE.search(answer) and select.select([terminal], [], [], 0.5)[0]:
            answer += os.read(terminal, 4096)
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        os.close(terminal)
    return answer


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
