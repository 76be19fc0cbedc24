"""Commands whose standard input, standard output or current folder is broken, or names hostile.

A terminal gets no name as it is, of the app and of the command line.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from antiphon.cli.commands import antiphon
from antiphon.render.display import displayable_in_a_row
from antiphon_kernel.access import invitations
from antiphon_kernel.contexts.opening import context_registry
from antiphon_kernel.server import authentication
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.roles import AccessRole
from tests.app.opened import World, opened, world
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import Terminal
from tests.fork_server import run_process
from tests.waiting import until

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
    "drift": ["drift", "list", "--json"],
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
    "completion": ["completion", "bash"],
}
"""A call of every command that prints something of its own."""

READING = {
    "call --jsonl": ["call", "--jsonl"],
    "call -": ["call", "block.list", "-"],
    "send": ["send", "--json"],
    "import -": ["import", "-"],
    "mcp": ["mcp"],
}
"""Calls that read standard input."""

NOT_HERE = {
    "acp": "prints lines of a protocol only",
    "demo": "opens the app",
    "join": "opens the app",
    "replay": "opens the app",
    "serve": "prints addresses only",
    "bench": "runs benchmarks of a checkout",
    "trust": "asks on a terminal",
    "move": "needs a database: tests/e2e/test_store.py",
    "mcp": "prints lines of a protocol only",
}


@dataclass(frozen=True)
class Condition:
    """Fault in the surroundings of a command, and how the command is to end."""

    before: str
    """Python that is executed before the process becomes the command."""
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
    "full": Condition(
        "os.dup2(os.open('/dev/full', os.O_WRONLY), 1)",
        1,
        f"{CANNOT_WRITE}No space left on device\n",
        ALL,
    ),
    "closed": Condition("os.close(1)", 1, f"{CANNOT_WRITE}Bad file descriptor\n", OPENING),
    "no reader": Condition("", -signal.SIGPIPE, "", STREAMING),
    # Following is over when nobody reads: that is how it is meant to end.
    "no reader of what is followed": Condition("", 0, "", FOLLOWING),
    "no input": Condition("os.close(0)", 1, CANNOT_READ, frozenset(READING)),
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
        """Exit code and standard error of a command; `before` is what Python does first."""
        done = run_process(
            [ANTIPHON, *arguments],
            b"a message",
            # What the interpreter itself does with closed streams, one command shows.
            forks=arguments[0] != "call" or "os.close" not in before,
            before=before,
            stdout=stdout,
            env=self.machine.env,
            cwd=cwd or self.machine.project,
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
            return prepared.run(prepared.arguments(command), before=of.before, stdout=stdout)

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
        needs_no_data = "--data" in arguments or command in ("keys", "completion")
        arguments += [] if needs_no_data else ["--data", data]
        return prepared.run(arguments, before="os.rmdir(os.getcwd())", cwd=gone)

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


HOSTILE_NAME = "\x1b]\x07\x9b\u202e\U000e0041\u200b"
"""The beginning of every name: short enough to be shown wherever a name is."""

SHOWN = displayable_in_a_row(HOSTILE_NAME)
DRIVING = "\x07\x08\x1b\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
FORBIDDEN_ON_SCREEN = re.compile(f"[{DRIVING}]")
OWN_SEQUENCES = re.compile(
    r"\x1b\[[0-9;:?<=>$]*[A-Za-z]|\x1b[=>78]|\x1b[P_][ -~]*\x1b\\|\x1b\]22;[a-z-]*\x07"
    rf"|\x1b\]2;[^{DRIVING}\n]*\x1b\\|\x1b\]11;\?\x1b\\|\x1b\]8;[ -~]*\x1b\\"
)
"""Styles, modes, positions, questions to the terminal, shapes of the pointer, titles, links."""

WITH_NAMES_AS_THEY_ARE = """
import sys
import antiphon.app
from antiphon.render.display import displayable_in_a_row as displayable
for name, module in [*sys.modules.items()]:
    if name.startswith("antiphon") and name not in LEFT_ALONE:
        for one, value in [*vars(module).items()]:
            if value is displayable:
                setattr(module, one, str)
"""


@pytest.fixture
async def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A kernel whose people, contexts and drafts have hostile names."""
    for module in (authentication, invitations, context_registry):
        monkeypatch.setattr(module, "is_name", lambda name: True)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(world(tmp_path, models=False))
        kernel = here.kernel
        human, shell = PrincipalKind.HUMAN, PrincipalKind.SHELL
        for status, kind in (("done", human), ("pending", human), ("done", shell)):
            principal = await kernel.principal(f"{HOSTILE_NAME}{status}{kind}", kind)
            actor = kernel.open_session(principal, "test")
            (await here.context()).ensure_member(actor)
            new = {"kind": "text", "status": status, "content": f"{HOSTILE_NAME} end"}
            await kernel.call(actor, "block.create", new)
        await here.call("context.create", label=f"{HOSTILE_NAME}notes")
        guest = await stack.enter_async_context(opened(here, as_name=f"{HOSTILE_NAME}guest"))
        await guest.live()
        await guest.edit()
        yield here


def look_around(terminal: Terminal) -> str:
    """Open what shows names; everything that was written to the terminal."""
    terminal.wait_for("end")
    terminal.press("f2")
    terminal.wait_for("notes")
    terminal.press("escape", "up")
    terminal.wait_for("NAVIGATE")
    terminal.press("b")
    terminal.press("U")
    terminal.wait_for("Take back")
    terminal.press("n")
    terminal.wait_for(lambda screen: "Take back" not in screen)
    terminal.press("ctrl+p")
    terminal.wait_for("Show or hide")
    terminal.type("Context")
    terminal.wait_for("Context: ")
    terminal.press("escape")
    terminal.wait_for(lambda screen: "Context: " not in screen)
    terminal.press("ctrl+q")
    terminal.wait_for_end()
    return terminal.output.decode()


def written_by(machine: Machine, arguments: Sequence[str]) -> str:
    """Run a command to its end; everything that was written to the terminal."""
    with Terminal([ANTIPHON, *arguments], env=machine.env, cwd=machine.project) as terminal:
        terminal.wait_for_end()
        return terminal.output.decode()


def driving(written: str) -> list[str]:
    """Return what drives a terminal and is no sequence of the app itself.

    A program that still runs may be in the middle of its last sequence.
    """
    whole = re.sub(r"\x1b[\[?=>0-9;]*$", "", written)
    return FORBIDDEN_ON_SCREEN.findall(OWN_SEQUENCES.sub("", whole))


async def test_hostile_names_in_the_app_do_not_reach_the_terminal(
    machine: Machine, hostile: World
) -> None:
    assert hostile.doors is not None
    program = [ANTIPHON, "--data", str(hostile.data)]
    with Terminal(program, env=machine.env, cwd=machine.project) as terminal:
        await asyncio.to_thread(terminal.wait_for, "live")
        news = hostile.kernel.access.news
        await until(lambda: news._event._waiters, "the app asks who joins")  # noqa: SLF001
        made = await hostile.kernel.invitations.invite(
            AccessRole.VIEWER, name=f"{HOSTILE_NAME}vera", expires=None, uses=None
        )
        url = f"{hostile.doors.sync}?token={made.token}"
        await asyncio.to_thread(machine.run, "call", "session.whoami", "--url", url)
        await asyncio.to_thread(terminal.wait_for, "vera has joined")
        written = await asyncio.to_thread(look_around, terminal)
    url = f"{hostile.doors.sync}?token={hostile.doors.token}"
    program = [ANTIPHON, "join", url, "--context", f"{HOSTILE_NAME}notes"]
    with Terminal(program, env=machine.env, cwd=machine.project) as terminal:
        await asyncio.to_thread(terminal.wait_for, "notes")
        joined = terminal.output.decode(errors="ignore")
    for one in (written, joined):
        assert SHOWN[:4] in one
        assert driving(one) == []


async def test_hostile_names_that_are_shown_as_they_are_reach_the_terminal_without_the_filter(
    machine: Machine, hostile: World
) -> None:
    program = [ANTIPHON, "--data", str(hostile.data)]

    def start(*left_alone: str) -> Terminal:
        before = f"LEFT_ALONE = {left_alone}\n{WITH_NAMES_AS_THEY_ARE}"
        return Terminal(program, env=machine.env, cwd=machine.project, before=before)

    with start() as terminal:
        await asyncio.to_thread(
            terminal.wait_for, lambda _: HOSTILE_NAME.encode() in terminal.output
        )
        assert driving(terminal.output.decode(errors="replace"))
    with start("antiphon.screen_filter") as terminal:
        await asyncio.to_thread(terminal.wait_for, f"{SHOWN}guest")
        written = terminal.output.decode(errors="ignore")
    assert driving(written) == []


async def test_hostile_names_in_commands_do_not_reach_the_terminal(
    machine: Machine, hostile: World, tmp_path: Path
) -> None:
    listed = await hostile.call("block.list")
    block = listed["blocks"][0]["block_id"]
    exported = tmp_path / "exported"
    exported.write_text((await hostile.call("context.export"))["text"])
    assert hostile.doors is not None
    url = f"{hostile.doors.sync}?token={hostile.doors.token}"
    data = ["--data", str(hostile.data)]
    commands = (
        ["call", "context.list", *data],
        ["call", "kernel.members", "--json", *data],
        [
            "call",
            "context.rename",
            json.dumps({"label": HOSTILE_NAME, "context": HOSTILE_NAME}),
            *data,
        ],
        ["export", *data],
        ["export", "--format", "markdown", *data],
        ["blame", block, *data],
        ["history", block, *data],
        ["log", *data],
        ["doctor", *data],
        ["import", str(exported), "--label", f"{HOSTILE_NAME}copy", "--url", url],
        ["tail", f"{HOSTILE_NAME}missing", "--url", url],
    )
    outputs = await asyncio.gather(
        *(asyncio.to_thread(written_by, machine, arguments) for arguments in commands)
    )
    for arguments, written in zip(commands, outputs, strict=True):
        assert written, arguments
        assert driving(written) == [], arguments
    assert sum(SHOWN in written for written in outputs) >= 4
