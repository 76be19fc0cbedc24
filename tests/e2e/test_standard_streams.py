"""Commands whose standard input, standard output or current folder is broken."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from antiphon.cli.commands import antiphon
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import Terminal

T = TypeVar("T")
R = TypeVar("R")

HOSTILE = (
    "\x1b]52;c;UFdORUQ=\x07 \x1b]0;title\x07 \x1b[2J \x1b]8;;http://x\x1b\\link \x1bPq\x1b\\"
    " \x1bPtmux;\x1b\x1b[5n\x1b\\ \x9b31m \u202eright \u200b \U000e0041 \r \x08 \x7f end"
)
FORBIDDEN = "\x1b\x07\x08\x7f\x9b\u202e\u200b\U000e0041"

PRINTING = {
    "call": ["call", "block.list"],
    "tail": ["tail"],
    "send": ["send", "--json"],
    "run": ["run", "Hello.", "--output", "json"],
    "models": ["models"],
    "blame": ["blame", "BLOCK"],
    "history": ["history", "BLOCK"],
    "layout": ["layout"],
    "export": ["export", "--format", "markdown"],
    "import": ["import", "EXPORT", "--label", "LABEL"],
    "invite": ["invite", "--role", "viewer"],
    "share": ["share", "--list"],
    "backup": ["backup", "NEW"],
    "restore": ["restore", "BACKUP", "--data", "OTHER"],
    "doctor": ["doctor"],
    "log": ["log"],
    "keys": ["keys"],
}
"""A call of every command that prints something of its own."""

READING = {
    "call --jsonl": ["call", "--jsonl"],
    "call -": ["call", "block.list", "-"],
    "send": ["send", "--json"],
    "import -": ["import", "-"],
}
"""Calls that read standard input."""

NOT_HERE = {
    "demo": "opens the app",
    "join": "opens the app",
    "serve": "prints addresses only",
    "bench": "runs benchmarks of a checkout",
    "trust": "asks on a terminal",
}


@dataclass(frozen=True)
class Condition:
    """Fault in the surroundings of a command, and how the command is to end."""

    redirection: str
    """Commands of a shell before it becomes the command."""
    code: int
    said: str
    commands: frozenset[str]


ALL = frozenset(PRINTING)
FOLLOWING = frozenset({"tail"})
STREAMING = frozenset({"call", "export", "log", "layout"})
OPENING = frozenset({"backup", "call", "export", "restore", "tail"})
"""Calls whose files or sockets could become their standard output."""
CANNOT_WRITE = "antiphon: cannot write to standard output: "
CANNOT_READ = "antiphon: cannot read standard input: Bad file descriptor\n"
CONDITIONS = {
    "full": Condition(">/dev/full", 1, f"{CANNOT_WRITE}No space left on device\n", ALL),
    "closed": Condition(">&-", 1, f"{CANNOT_WRITE}Bad file descriptor\n", OPENING),
    "no reader": Condition("", -signal.SIGPIPE, "", STREAMING),
    # Following is over when nobody reads: that is how it is meant to end.
    "no reader of what is followed": Condition("", 0, "", FOLLOWING),
    "no input": Condition("<&-", 1, CANNOT_READ, frozenset(READING)),
}


class Prepared:
    """A project whose kernel holds hostile text, and files made of it."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self._folder = folder
        self._count = itertools.count()
        made = machine.succeed("call", "block.create", "-", "--json", stdin=_message(HOSTILE))
        self._block = json.loads(made.stdout)["block_id"]
        (folder / "exported").write_text(machine.run("export").stdout)
        assert machine.run("backup", str(folder / "saved")).returncode == 0

    def arguments(self, command: str) -> list[str]:
        number = next(self._count)
        named = {
            "BLOCK": self._block,
            "EXPORT": str(self._folder / "exported"),
            "LABEL": f"copy{number}",
            "BACKUP": str(self._folder / "saved"),
            "NEW": str(self._folder / f"new{number}"),
            "OTHER": str(self._folder / f"other{number}"),
        }
        return [named.get(one, one) for one in (PRINTING | READING)[command]]

    def run(
        self,
        arguments: Sequence[str | bytes],
        *,
        before: str = "",
        stdout: int = subprocess.PIPE,
        cwd: Path | None = None,
    ) -> tuple[int, str]:
        """Exit code and standard error of a command; `before` is what a shell does first."""
        done = subprocess.run(
            ["/bin/bash", "-c", f'{before}\nexec "$@"', "-", ANTIPHON, *arguments],
            input=b"a message",
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=self.machine.env,
            cwd=cwd or self.machine.project,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr.decode()


def _message(text: str) -> str:
    return json.dumps({"role": "user", "kind": "text", "status": "done", "content": text})


def at_once(run: Callable[[T], R], each: Iterable[T]) -> list[tuple[T, R]]:
    """Each with what `run` returns for it; as many run at a time as there are processors."""
    each = list(each)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(each, pool.map(run, each), strict=True))


@pytest.fixture
def prepared(machine: Machine, tmp_path: Path) -> Prepared:
    folder = tmp_path / "files"
    folder.mkdir()
    return Prepared(machine, folder)


@pytest.fixture
def no_reader() -> Iterator[int]:
    """A pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def test_commands_all_are_called_here_or_left_out_with_a_reason() -> None:
    assert PRINTING.keys() | NOT_HERE.keys() == antiphon.commands.keys()


def test_every_command_with_a_broken_stream_ends_as_unix_programs_do(
    prepared: Prepared, no_reader: int
) -> None:
    for name, condition in CONDITIONS.items():

        def run(command: str, name: str = name, of: Condition = condition) -> tuple[int, str]:
            stdout = no_reader if name.startswith("no reader") else subprocess.PIPE
            before = of.redirection and f"exec {of.redirection}"
            return prepared.run(prepared.arguments(command), before=before, stdout=stdout)

        ends = dict(at_once(run, condition.commands))
        assert ends == dict.fromkeys(condition.commands, (condition.code, condition.said)), name


def test_every_command_in_a_deleted_folder_works_or_says_so(
    prepared: Prepared, tmp_path: Path
) -> None:
    data = str(prepared.machine.data)

    def run(command: str) -> tuple[int, str]:
        gone = tmp_path / command
        gone.mkdir()
        arguments = prepared.arguments(command)
        needs_no_data = "--data" in arguments or command == "keys"
        arguments += [] if needs_no_data else ["--data", data]
        return prepared.run(arguments, before='rmdir "$PWD"', cwd=gone)

    reason = "antiphon: the current folder does not exist any more: "
    for command, (code, said) in at_once(run, ALL - FOLLOWING):
        assert code == 0 or said.splitlines()[-1].startswith(reason), (command, said)
        assert "Traceback" not in said, command


@pytest.mark.parametrize("arguments", [["backup", b"b\xff"], ["call", "x", "--data", b"d\xff"]])
def test_argument_that_is_no_text_is_refused_in_a_sentence(
    machine: Machine, arguments: list[str | bytes]
) -> None:
    done = subprocess.run(
        [ANTIPHON, *arguments],
        env=machine.env,
        cwd=machine.project,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"antiphon: ")
    assert b"is not UTF-8" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.fixture
def run_in_terminal(prepared: Prepared) -> Callable[[list[str]], str]:
    """Return a function that gives what a command writes to a terminal, as it arrives there."""

    def run(arguments: list[str]) -> str:
        terminal = Terminal(
            [ANTIPHON, *arguments], env=prepared.machine.env, cwd=prepared.machine.project
        )
        with terminal:
            if arguments[0] == "send":
                terminal.wait_for("write the message")
                terminal.type("hello\n\x04")
            if arguments[0] == "tail":
                terminal.wait_for("end")
                terminal.press("ctrl+c")
            terminal.wait_for_end()
            return terminal.output.decode()

    return run


def test_every_command_on_a_terminal_writes_nothing_that_drives_it(
    prepared: Prepared, run_in_terminal: Callable[[list[str]], str]
) -> None:
    more = (["export"], ["tail", "--json"], ["call", "block.nothing", json.dumps({"a": HOSTILE})])
    failing = (["blame", f"no\x1b[31m\u202e{name}"] for name in ("x", "y.z.1"))
    calls = [*map(prepared.arguments, PRINTING), *more, *failing, ["nothing\x1b[2J"]]
    for arguments, written in at_once(run_in_terminal, calls):
        assert written, arguments
        found = [one for one in written if one in FORBIDDEN]
        assert not found, (arguments, written)
        # The terminal's own line ends are the only carriage returns.
        assert "\r" not in written.replace("\r\n", ""), arguments


def test_export_on_a_terminal_is_the_same_json_and_in_a_pipe_the_same_bytes(
    prepared: Prepared, run_in_terminal: Callable[[list[str]], str]
) -> None:
    def read(text: str) -> list[object]:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    piped = prepared.machine.run("export").stdout
    assert read(run_in_terminal(["export"])) == read(piped)
    assert HOSTILE in prepared.machine.run("export", "--format", "markdown").stdout
