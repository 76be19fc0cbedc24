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

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorial.md"
NAMES: Final = {"Esc": "escape", "PgUp": "pageup", "PgDn": "pagedown"} | dict(
    zip("↑↓←→", ("up", "down", "left", "right"), strict=True)
)
SIZE: Final = {"cols": 100, "rows": 30}
APP: Final = "antiphon"
QUIT: Final = "Ctrl+Q"


@dataclass
class File:
    """A file that the reader saves."""

    path: str
    text: str


@dataclass
class Command:
    """A command of somebody, and what it prints: `…` stands for anything."""

    person: str
    line: str
    printed: str


@dataclass
class Keys:
    """Keys that somebody presses in a program that is open, and the texts that it shows then."""

    person: str
    pressed: Sequence[str]
    seen: Sequence[str]


Step = File | Command | Keys


def steps_of(page: str) -> Iterator[Step]:
    """Read the files, commands and tables of keys of a page, in their order."""
    fence = r"^```(?P<language>\w+)\n(?P<code>(?s:.*?))^```$"
    table = r"^\| (?P<person>\w+) presses \|.*\n\|[-|]+\n(?P<rows>(?:\|.*\n)+)"
    save = r"^.*[Ss]ave as `(?P<path>[^`]+)`:\n\n"
    for found in re.finditer(f"(?:{save})?{fence}|{table}", page, re.M):
        if found["path"]:
            yield File(found["path"], found["code"])
        elif found["language"] == "console":
            for person, line, printed in re.findall(
                r"^(\w+)\$ (.+)\n((?:(?!\w+\$ ).*\n)*)", found["code"], re.M
            ):
                yield Command(person, line, printed)
        elif found["rows"]:
            for row in found["rows"].splitlines():
                cells = (re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[1:3])
                yield Keys(found["person"], *cells)


def pattern_of(text: str) -> str:
    """Return the regular expression of a text in which `…` stands for anything in its line."""
    lines = ("(?:.*\n)*?" if one == "…\n" else re.escape(one) for one in text.splitlines(True))
    return "".join(lines).replace("…", "(.*?)")


class Readers:
    """People who do what the page says, each in a terminal and a folder of their own."""

    def __init__(self, machine: Machine, path: str) -> None:
        self._machine = machine
        self._path = path
        self._folders: dict[str, Path] = {}
        self._open: dict[str, Terminal] = {}
        self._printed = ""

    def play(self, steps: Sequence[Step]) -> None:
        for step, following in zip(steps, (*steps[1:], None), strict=True):
            if isinstance(step, File):
                path = self._folders["ada"] / step.path
                path.parent.mkdir(exist_ok=True)
                path.write_text(step.text)
            elif isinstance(step, Keys):
                self._press(step)
            else:
                self._end(step.person)
                is_open = isinstance(following, Keys) and following.person == step.person
                self._run(step, is_open=is_open)
        for person in list(self._open):
            self._end(person)

    def _press(self, keys: Keys) -> None:
        terminal = self._open[keys.person]
        for key in keys.pressed:
            name = NAMES.get(key, key.lower())
            terminal.type(KEYS.get(name, key))
        for text in keys.seen:
            terminal.wait_for(text, what=f"{keys}")
        if QUIT in keys.pressed:
            self._end(keys.person)

    def _run(self, command: Command, *, is_open: bool) -> None:
        line = self._known(command.line.replace("'", "")) if "…" in command.line else command.line
        folder = self._folders.get(command.person, self._machine.project)
        env = {"PATH": self._path, "HOME": str(self._machine.home)}
        if is_open:
            program, *arguments = shlex.split(line)
            given = {"program": [self._machine_program(program)], "env": env, "cwd": folder}
            self._open[command.person] = self._machine.terminal(*arguments, **given, **SIZE)
            return
        argv = shlex.split(line)
        if argv[0] == APP and not re.search(r"[|<>~]", line):
            done = self._machine.run(*argv[1:], env=env, cwd=folder)
        else:
            shell = ["/bin/sh", "-ec", f"{line}\npwd >{self._machine.home}/folder"]
            done = self._machine.run_program(shell, b"", env, folder)
            self._folders[command.person] = Path((self._machine.home / "folder").read_text()[:-1])
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{line}:\n{printed}"
        if command.printed:
            wanted = pattern_of(command.printed.replace("'", ""))
            assert re.fullmatch(wanted, printed.replace("'", "")), f"{line}:\n{printed}"
        self._printed += printed

    def _machine_program(self, name: str) -> str:
        return str(shutil.which(name, path=self._path))

    def _known(self, line: str) -> str:
        """Put what commands have printed into the places of `…` in a later one."""
        found = re.findall(pattern_of(line).replace("(.*?)", r"\S+"), self._printed)
        assert found, f"no command has printed `{line}`"
        return str(found[-1])

    def _end(self, person: str) -> None:
        if person in self._open:
            terminal = self._open.pop(person)
            assert terminal.wait_for_end() == 0, terminal.text


@pytest.fixture
def path(machine: Machine, tmp_path: Path) -> str:
    """Return the search path of programs, with an `ssh` that has cleo's key and knows no host."""
    shim = tmp_path / "bin" / "ssh"
    shim.parent.mkdir()
    key = machine.home / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    subprocess.run([KEYGEN, "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    own = ["-o", f"UserKnownHostsFile={tmp_path / 'known'}", "-o", "IdentityAgent=none"]
    given = shlex.join([*NO_CHECKS, *own, "-i", str(key)])
    shim.write_text(f'#!/bin/sh\nexec {SSH} {given} "$@"\n')
    shim.chmod(0o755)
    return os.pathsep.join([str(shim.parent), str(Path(sys.executable).parent), os.environ["PATH"]])


@needs_openssh
def test_tutorial_done_as_written_shows_what_it_says(machine: Machine, path: str) -> None:
    Readers(machine, path).play(list(steps_of(PAGE.read_text("utf-8"))))
