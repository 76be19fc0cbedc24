"""An end that nobody chose: the terminal goes away, or the app fails."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message
from tests.e2e.terminal import Terminal, shows_words
from tests.local_model import looks_into_proc
from tests.processes import children_of, has_ended
from tests.recordings import numbered_recording
from tests.waiting import wait_until


def kept_in(machine: Machine) -> str:
    """Everything that was written down on this machine because no kernel took it."""
    return "\n".join(path.read_text() for path in machine.home.rglob("refused/*.md"))


def begin(machine: Machine) -> None:
    machine.call(machine.data, "block.create", **message("some text"))


def edit_some_text(terminal: Terminal) -> None:
    """Edit the text in an app that has been opened."""
    terminal.wait_for("some text")
    terminal.wait_for("live")
    terminal.press("up", "enter")
    terminal.wait_for("EDIT")


def hang_up(terminal: Terminal) -> None:
    terminal.hang_up()
    assert terminal.wait_for_end() == -signal.SIGHUP


def test_hangup_keeps_what_no_kernel_has_taken_and_tells_of_it_once(machine: Machine) -> None:
    begin(machine)
    alone = machine.terminal("join")
    edit_some_text(alone)
    os.kill(machine.kernel().pid, signal.SIGKILL)
    alone.wait_for("offline")
    alone.type("typed alone ")
    alone.wait_for("typed alone some text")
    hang_up(alone)
    assert "typed alone " in kept_in(machine)

    machine.call(machine.data, "kernel.info")
    beside = machine.terminal("join")
    beside.wait_for("Something that you wrote last time may not be on the kernel")
    beside.press("ctrl+p")
    beside.wait_for("Search")
    beside.type("what was refused")
    beside.press("enter")
    beside.wait_for("typed alone")
    beside.press("escape")
    edit_some_text(beside)
    beside.type("the last words of a long day, ")
    beside.wait_for("day, some text")
    hang_up(beside)
    (block,) = machine.call(machine.data, "block.list")["blocks"]
    assert machine.content(block["block_id"]) == "the last words of a long day, some text"
    assert "long day" not in kept_in(machine)

    later = machine.terminal("join")
    edit_some_text(later)
    assert "wrote last time" not in later.text
    kernel = machine.kernel().pid
    os.kill(kernel, signal.SIGSTOP)
    try:
        later.type("typed to nobody ")
        later.wait_for("typed to nobody the last words")
        hang_up(later)
    finally:
        os.kill(kernel, signal.SIGCONT)
    kept = kept_in(machine)
    assert "typed to nobody " in kept
    assert "it may have saved this all the same" in kept


def under_make(machine: Machine, *, in_a_shell: bool) -> Terminal:
    """Run the app as a target of a Makefile does: make leads the session, and waits for it."""
    makefile = machine.home / "Makefile"
    makefile.write_text(f"start:\n\t@{shlex.join([ANTIPHON, 'join'])}\n")
    make = ["make", "-s", "-f", str(makefile), "start"]
    if not in_a_shell:
        return machine.terminal(program=make)
    terminal = machine.terminal(program=["bash", "--norc", "-i"])
    terminal.type(shlex.join(make))
    terminal.press("enter")
    return terminal


def descendants(pid: int) -> list[int]:
    """Return a process and all that it and its children have started."""
    return [pid, *(one for child in children_of(pid) for one in descendants(child))]


def kill_child(terminal: Terminal) -> None:
    os.kill(children_of(terminal.process.pid)[0], signal.SIGKILL)


def kill_leader(terminal: Terminal) -> None:
    os.kill(terminal.process.pid, signal.SIGKILL)


@looks_into_proc
def test_terminal_that_goes_ends_the_demo_with_its_kernel_while_a_model_writes(
    machine: Machine, tmp_path: Path
) -> None:
    recorded = numbered_recording(tmp_path / "aria.jsonl", model="aria", words=900, pause_ms=60)
    terminal = machine.terminal("demo", "--play", str(recorded.path))
    terminal.wait_for(shows_words)
    started = [*descendants(terminal.process.pid), machine.kernel().pid]
    terminal.disconnect()
    wait_until(lambda: all(map(has_ended, started)), "everything has ended")


@looks_into_proc
def test_terminal_that_goes_under_make_ends_the_app_and_keeps_the_message(machine: Machine) -> None:
    begin(machine)
    ways: tuple[tuple[bool, Callable[[Terminal], None]], ...]
    ways = (False, Terminal.disconnect), (False, kill_leader), (True, kill_child)
    typed = ""
    for in_a_shell, go in ways:
        terminal = under_make(machine, in_a_shell=in_a_shell)
        terminal.wait_for("live")
        terminal.wait_for(typed.strip())
        terminal.type(f"{go.__name__} ")
        typed += f"{go.__name__} "
        terminal.wait_for(typed.strip())
        # A shell goes on.
        started = descendants(terminal.process.pid)[in_a_shell:]
        go(terminal)
        wait_until(lambda: all(map(has_ended, started)), f"the end by {go.__name__}")  # noqa: B023
    assert not has_ended(machine.kernel().pid)
    *_, draft = machine.call(machine.data, "block.list")["blocks"]
    assert machine.content(draft["block_id"]) == typed


FAULTY = """
from antiphon.screens.conversation_frame import ConversationFrame
ConversationFrame.action_help = lambda self: 1 / 0
"""


def test_app_that_fails_prints_why_and_ends_with_a_code_that_is_not_0(machine: Machine) -> None:
    begin(machine)
    argv = [ANTIPHON, "join"]
    with Terminal(argv, env=machine.env, cwd=machine.project, rows=60, before=FAULTY) as terminal:
        terminal.wait_for("some text")
        terminal.wait_for("live")
        terminal.press("f1")
        assert terminal.wait_for_end() == 1
        assert "ZeroDivisionError: division by zero" in terminal.text
