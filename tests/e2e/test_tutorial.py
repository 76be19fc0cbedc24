"""The tutorial: each of its commands is run, and each of its keys pressed, in its order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.machine import Machine
from tests.e2e.sharing import KEYGEN, NO_CHECKS, SSH, needs_openssh
from tests.e2e.terminal import KEYS, Terminal
from tests.waiting import PATIENCE

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorial.md"
NAMES: Final = {"Esc": "escape", "↑": "up", "↓": "down", "←": "left", "→": "right"}
QUIT: Final = "Ctrl+Q"


@dataclass(frozen=True)
class File:
    """A file that the reader saves."""

    path: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command of somebody, and what it prints: `…` stands for anything."""

    person: str
    line: str
    printed: str


@dataclass(frozen=True)
class Keys:
    """Keys that somebody presses in a program that is open, and the texts that it shows then."""

    person: str
    pressed: Sequence[str]
    seen: Sequence[str]


Step = File | Command | Keys

SAVE: Final = r"^Save as `(?P<path>[^`]+)`:\n\n"
FENCE: Final = r"^```(?P<language>\w+)\n(?P<code>(?s:.*?))^```$"
TABLE: Final = r"^\| (?P<person>\w+) presses \|.*\n\|[-|]+\n(?P<rows>(?:\|.*\n)+)"
COMMAND: Final = r"^(\w+)\$ (.+)\n((?:(?!\w+\$ ).*\n)*)"


def steps_of(page: str) -> Iterator[Step]:
    """Yield the files, commands and rows of tables of keys of a page, in their order."""
    for found in re.finditer(f"(?:{SAVE})?{FENCE}|{TABLE}", page, re.M):
        if found["path"]:
            yield File(found["path"], found["code"])
        elif found["language"] == "console":
            for person, line, printed in re.findall(COMMAND, found["code"], re.M):
                yield Command(person, line, printed)
        elif found["rows"]:
            for row in found["rows"].splitlines():
                pressed, seen = (re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[1:3])
                yield Keys(found["person"], pressed, seen)


def pattern_of(text: str) -> str:
    """Return the regular expression of a text in which `…` stands for anything in a line.

    As a line of its own it stands for any lines. Versions depend on how fast somebody types.
    """
    lines = ("(?:.*\n)*?" if one == "…\n" else re.escape(one) for one in text.splitlines(True))
    return re.sub(r"\bv\d+\b", r"v\\d+", "".join(lines).replace("…", ".*?"))


def joined(blame: str) -> str:
    """Return lines of blame in which what one author wrote into one line stands together."""
    return re.sub(r"(?m)^(   (\S+)  v\d+  .*)\n   \2  v\d+  \S+ \S+  ", r"\1", blame)


class Readers:
    """People who do what the page says, each in a terminal and a folder of their own.

    Args:
        path: where programs are looked for.
    """

    def __init__(self, machine: Machine, path: str) -> None:
        self._machine = machine
        self._env = {"PATH": path, "HOME": str(machine.home)}
        self._folders: dict[str, Path] = {}
        self._open: dict[str, Terminal] = {}
        self._printed = ""

    def play(self, steps: Sequence[Step]) -> None:
        for step, following in zip(steps, (*steps[1:], None), strict=True):
            match step:
                case File(path, text):
                    (self._folders["ada"] / path).write_text(text)
                case Keys():
                    self._press(step)
                case Command(person):
                    self._end(person)
                    if isinstance(following, Keys) and following.person == person:
                        self._open[person] = self._start(step)
                    else:
                        self._run(step)
        for person in list(self._open):
            self._end(person)

    def _press(self, keys: Keys) -> None:
        terminal = self._open[keys.person]
        for key in keys.pressed:
            terminal.type(KEYS.get(NAMES.get(key, key.lower()), key))
        for text in keys.seen:
            # A long path may break a line anywhere.
            wanted = "".join(text.split())
            terminal.wait_for(lambda seen: wanted in "".join(seen.split()), what=f"{keys}")  # noqa: B023
        if QUIT in keys.pressed:
            self._end(keys.person)

    def _start(self, command: Command) -> Terminal:
        program, *arguments = shlex.split(self._filled(command.line))
        found = shutil.which(program, path=self._env["PATH"])
        assert found, program
        return self._machine.terminal(
            *arguments,
            program=(found,),
            env=self._env,
            cwd=self._folders.get(command.person),
            cols=100,
            rows=30,
        )

    def _run(self, command: Command) -> None:
        line, folder = command.line, self._folders.get(command.person)
        if line.startswith("antiphon "):
            # Without a shell it is forked, which costs less.
            line, _, target = line.replace("~/", f"{self._machine.home}/").partition(" > ")
            done = self._machine.run(*shlex.split(line)[1:], env=self._env, cwd=folder)
            if target and folder:
                (folder / target).write_text(done.stdout)
        else:
            left = self._machine.home / "folder"
            script = f"{line}\npwd >{shlex.quote(str(left))}"
            done = self._machine.run_program(["/bin/sh", "-ec", script], b"", self._env, folder)
            self._folders[command.person] = Path(left.read_text().removesuffix("\n"))
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{line}:\n{printed}"
        if command.printed:
            wanted = pattern_of(command.printed.replace("'", ""))
            assert re.fullmatch(wanted, joined(printed.replace("'", ""))), f"{line}:\n{printed}"
        self._printed += printed

    def _filled(self, line: str) -> str:
        """Return a line with what commands have printed in the places of `…`."""
        if "…" not in line:
            return line
        pattern = pattern_of(line.replace("'", "")).replace(".*?", r"\S+")
        found = re.findall(pattern, self._printed)
        assert found, f"no command has printed `{line}`"
        return str(found[-1])

    def _end(self, person: str) -> None:
        if (terminal := self._open.pop(person, None)) is None:
            return
        try:
            code = terminal.wait_for_end()
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{person} is still there:\n{terminal.text}") from error
        assert code == 0, terminal.text


@pytest.fixture
def path(machine: Machine, tmp_path: Path) -> str:
    """Return the search path of programs, with an `ssh` that has cleo's key and knows no host."""
    key = machine.home / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    made = [KEYGEN or "", "-q", "-t", "ed25519", "-N", "", "-C", "cleo", "-f", str(key)]
    subprocess.run(made, check=True, timeout=PATIENCE)
    own = ["-o", f"UserKnownHostsFile={tmp_path / 'known'}", "-o", "IdentityAgent=none"]
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    words = shlex.join([SSH or "", *NO_CHECKS, *own, "-i", str(key)])
    ssh.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    ssh.chmod(0o755)
    return os.pathsep.join([str(ssh.parent), str(Path(sys.executable).parent), os.environ["PATH"]])


@needs_openssh
def test_tutorial_done_as_written_shows_what_it_says(machine: Machine, path: str) -> None:
    Readers(machine, path).play(list(steps_of(PAGE.read_text("utf-8"))))
