"""Commands whose standard input, standard output or current folder is broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from antiphon.command_line.commands import antiphon
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import Terminal

HOSTILE = (
    "\x1b]52;c;UFdORUQ=\x07 \x1b]0;title\x07 \x1b[2J \x1b]8;;http://x\x1b\\link \x1bPq\x1b\\"
    " \x1bPtmux;\x1b\x1b[5n\x1b\\ \x9b31m \u202eright \u200b \U000e0041 \r \x08 \x7f end"
)
FORBIDDEN = "\x1b\x07\x08\x7f\x9b\u202e\u200b\U000e0041"

PRINTING = {
    "call": ["call", "block.list"],
    "tail": ["tail"],
    "send": ["send", "--json"],
    "blame": ["blame", "BLOCK"],
    "history": ["history", "BLOCK"],
    "export": ["export", "--format", "markdown"],
    "import": ["import", "EXPORT"],
    "invite": ["invite", "--role", "viewer"],
    "backup": ["backup", "NEW"],
    "restore": ["restore", "BACKUP", "--data", "OTHER"],
    "doctor": ["doctor"],
    "log": ["log"],
}
"""A call of every command that prints something of its own."""

NOT_HERE = {
    "demo": "opens the app",
    "join": "opens the app",
    "serve": "prints addresses only",
    "bench": "runs benchmarks of a checkout",
}


class Prepared:
    """A project whose kernel holds hostile text, and files made of it."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self._folder = folder
        self._count = 0
        made = machine.run("call", "block.create", "-", "--json", stdin=_message(HOSTILE))
        assert made.returncode == 0, made.stderr
        self._block = json.loads(made.stdout)["block_id"]
        (folder / "exported").write_text(machine.run("export").stdout)
        assert machine.run("backup", str(folder / "saved")).returncode == 0

    def arguments(self, command: str) -> list[str]:
        self._count += 1
        named = {
            "BLOCK": self._block,
            "EXPORT": str(self._folder / "exported"),
            "BACKUP": str(self._folder / "saved"),
            "NEW": str(self._folder / f"new{self._count}"),
            "OTHER": str(self._folder / f"other{self._count}"),
        }
        return [named.get(one, one) for one in PRINTING[command]]

    def shell(self, command: str, redirection: str) -> tuple[int, str]:
        """Exit code and standard error of a command with its streams redirected by a shell."""
        done = subprocess.run(
            ["/bin/bash", "-c", f'"$@" {redirection}', "-", ANTIPHON, *self.arguments(command)],
            input=b"a message",
            env=self.machine.env,
            cwd=self.machine.project,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr.decode()


def _message(text: str) -> str:
    return json.dumps({"role": "user", "kind": "text", "status": "done", "content": text})


@pytest.fixture
def prepared(machine: Machine, tmp_path: Path) -> Prepared:
    folder = tmp_path / "files"
    folder.mkdir()
    return Prepared(machine, folder)


def test_commands_all_are_called_here_or_left_out_with_a_reason() -> None:
    assert PRINTING.keys() | NOT_HERE.keys() == antiphon.commands.keys()


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_every_command_that_cannot_write_says_why_and_fails(
    prepared: Prepared, redirection: str, reason: str
) -> None:
    for command in PRINTING:
        code, said = prepared.shell(command, redirection)
        expected = f"antiphon: cannot write to standard output: {reason}\n"
        assert (code, said) == (1, expected), command


def test_every_command_without_a_reader_ends_by_sigpipe_in_silence(prepared: Prepared) -> None:
    for command in PRINTING:
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [ANTIPHON, *prepared.arguments(command)],
            input=b"a message",
            stdout=writing,
            stderr=subprocess.PIPE,
            env=prepared.machine.env,
            cwd=prepared.machine.project,
            timeout=60,
            check=False,
        )
        os.close(writing)
        # Following is over when nobody reads: that is how it is meant to end.
        ends = 0 if command == "tail" else -signal.SIGPIPE
        assert (done.returncode, done.stderr) == (ends, b""), command


@pytest.mark.parametrize(
    "arguments", [["call", "--jsonl"], ["call", "block.list", "-"], ["send"], ["import", "-"]]
)
def test_command_that_cannot_read_its_input_says_so(
    prepared: Prepared, arguments: list[str]
) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", '"$@" <&-', "-", ANTIPHON, *arguments],
        env=prepared.machine.env,
        cwd=prepared.machine.project,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == b"antiphon: cannot read standard input: Bad file descriptor\n"
    assert done.returncode == 1


def test_every_command_in_a_deleted_folder_works_or_says_so(
    prepared: Prepared, tmp_path: Path
) -> None:
    data = str(prepared.machine.project / ".antiphon")
    gone = tmp_path / "gone"
    for command in PRINTING.keys() - {"tail"}:
        gone.mkdir()
        arguments = prepared.arguments(command)
        arguments += [] if "--data" in arguments else ["--data", data]
        done = subprocess.run(
            ["/bin/bash", "-c", 'rmdir "$PWD"; exec "$@"', "-", ANTIPHON, *arguments],
            input=b"a message",
            env=prepared.machine.env,
            cwd=gone,
            capture_output=True,
            timeout=60,
            check=False,
        )
        said = done.stderr.decode().splitlines()[-1:]
        reason = "antiphon: the current folder does not exist any more: "
        assert done.returncode == 0 or said[0].startswith(reason), (command, done.stderr)
        assert b"Traceback" not in done.stderr


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
def run_in_terminal(prepared: Prepared) -> Iterator[Callable[[list[str]], str]]:
    """What a command writes to a terminal, as it arrives there."""

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

    yield run


def test_every_command_on_a_terminal_writes_nothing_that_drives_it(
    prepared: Prepared, run_in_terminal: Callable[[list[str]], str]
) -> None:
    more = (["export"], ["tail", "--json"], ["call", "block.nothing", json.dumps({"a": HOSTILE})])
    failing = (["blame", f"no\x1b[31m\u202e{name}"] for name in ("x", "y.z.1"))
    calls = [*map(prepared.arguments, PRINTING), *more, *failing, ["nothing\x1b[2J"]]
    for arguments in calls:
        written = run_in_terminal(arguments)
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
