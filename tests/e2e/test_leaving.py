"""An end that nobody chose: the terminal goes away, or the app fails."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

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


def edit_in_terminal(machine: Machine) -> Terminal:
    """Begin a text, and open it for editing in an app on a terminal."""
    begin(machine)
    terminal = machine.terminal("join")
    terminal.wait_for("some text")
    terminal.wait_for("live")
    terminal.press("up", "enter")
    terminal.wait_for("EDIT")
    return terminal


def test_text_kept_at_a_hangup_without_a_kernel_is_told_of_once_when_the_app_is_opened_again(
    machine: Machine,
) -> None:
    terminal = edit_in_terminal(machine)
    os.kill(machine.kernel().pid, signal.SIGKILL)
    terminal.wait_for("offline")
    terminal.type("typed alone ")
    terminal.wait_for("typed alone some text")
    terminal.hang_up()
    wait_until(lambda: "typed alone " in kept_in(machine), "it is written down")
    assert terminal.wait_for_end() == -signal.SIGHUP
    machine.call(machine.data, "kernel.info")
    again = machine.terminal("join")
    again.wait_for("Something that you wrote last time may not be on the kernel")
    again.press("ctrl+p")
    again.wait_for("Search")
    again.type("what was refused")
    again.press("enter")
    again.wait_for("typed alone")
    again.hang_up()
    again.wait_for_end()
    later = machine.terminal("join")
    later.wait_for("some text")
    later.wait_for("live")
    assert "wrote last time" not in later.text


def test_hangup_while_the_kernel_is_stopped_keeps_what_was_typed(machine: Machine) -> None:
    terminal = edit_in_terminal(machine)
    kernel = machine.kernel().pid
    os.kill(kernel, signal.SIGSTOP)
    try:
        terminal.type("typed to nobody ")
        terminal.wait_for("typed to nobody some text")
        terminal.hang_up()
        assert terminal.wait_for_end() == -signal.SIGHUP
    finally:
        os.kill(kernel, signal.SIGCONT)
    kept = kept_in(machine)
    assert "typed to nobody " in kept
    assert "it may have saved this all the same" in kept


def test_hangup_beside_a_kernel_leaves_everything_there(machine: Machine) -> None:
    terminal = edit_in_terminal(machine)
    terminal.type("the last words of a long day, ")
    terminal.wait_for("day, some text")
    terminal.hang_up()
    assert terminal.wait_for_end() == -signal.SIGHUP
    (block,) = machine.call(machine.data, "block.list")["blocks"]
    assert machine.content(block["block_id"]) == "the last words of a long day, some text"
    assert kept_in(machine) == ""


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
@pytest.mark.parametrize(
    ("in_a_shell", "go"),
    [(False, Terminal.disconnect), (False, kill_leader), (True, kill_child)],
)
def test_terminal_that_goes_under_make_ends_the_app_and_keeps_the_message(
    machine: Machine, *, in_a_shell: bool, go: Callable[[Terminal], None]
) -> None:
    begin(machine)
    terminal = under_make(machine, in_a_shell=in_a_shell)
    terminal.wait_for("live")
    terminal.type("half a message")
    terminal.wait_for("half a message")
    # A shell goes on.
    started = descendants(terminal.process.pid)[in_a_shell:]
    go(terminal)
    wait_until(lambda: all(map(has_ended, started)), "the app has ended")
    assert not has_ended(machine.kernel().pid)
    again = machine.terminal("join")
    again.wait_for("half a message")


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
