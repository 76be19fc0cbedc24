"""`antiphon --linear` as a process, in a pipe and on a terminal."""

from __future__ import annotations

import re

from tests.e2e.machine import Machine


def test_linear_mode_in_a_pipe_sends_runs_and_prints_every_answer(machine: Machine) -> None:
    typed = "hello\\\nworld\n/new other\nthere\n/nothing\n/contexts\n!echo $((6 * 7))\nlast"
    done = machine.succeed("--linear", stdin=typed)
    lines = done.stdout.splitlines()
    for line in ("hello", "world", "42", "there", "last", "Context other."):
        assert line in lines
    assert "There is no command /nothing: /help lists them." in lines
    assert "Contexts: default, other." in lines
    assert "\x1b" not in done.stdout
    assert lines.index("world") < lines.index("Context other.") < lines.index("there")


def test_linear_mode_edits_a_line_takes_it_back_and_ends_in_a_long_context(
    machine: Machine,
) -> None:
    machine.succeed("--linear", stdin="one\\\ntwo\n")
    listed = machine.succeed("--linear", stdin="/read\n").stdout
    found = re.search(r"default\.\w+\.\d+", listed)
    assert found is not None
    block = found[0]
    edit = f"/edit {block} 1 three\n/read {block}\n/undo {block}\n"
    done = machine.succeed("--linear", stdin=edit)
    assert "1\tthree" in done.stdout
    assert f"Taken back in {block}." in done.stdout
    assert "1\ttwo" in machine.succeed("--linear", stdin=f"/read {block}\n").stdout
    machine.succeed("--linear", stdin="\n".join(f"message {number}" for number in range(15)))
    done = machine.succeed("--linear", stdin="another\n")
    assert "another" in done.stdout
    assert "message 14" in done.stdout and "message 1\n" not in done.stdout


def test_linear_mode_on_a_terminal_moves_no_cursor(machine: Machine) -> None:
    terminal = machine.terminal("--linear", env={"TERM": "dumb"})
    terminal.wait_for("/help lists more")
    terminal.type("hello there")
    terminal.press("enter")
    terminal.wait_for("── ")
    terminal.type("/quit")
    terminal.press("enter")
    assert terminal.wait_for_end() == 0
    assert b"\x1b" not in terminal.output
