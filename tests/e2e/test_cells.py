"""A cell in a real terminal: edited in another program, found, clicked, resized and copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.e2e.sharing import message
from tests.e2e.terminal import Terminal
from tests.waiting import wait_until

EDITOR = """#!/bin/sh
printf 'the editor has the terminal: '
read answer
sed -i "s/two/$answer/" "$1"
"""


@pytest.fixture
def block(machine: Machine) -> str:
    made = machine.call(machine.data, "block.create", **message("one\ntwo\nthree\n"))
    return str(made["block_id"])


def opened(machine: Machine, **env: str) -> Terminal:
    terminal = machine.terminal("join", env=env)
    terminal.wait_for("three")
    terminal.wait_for("live")
    return terminal


def test_editor_gets_the_terminal_and_its_result_is_merged(
    machine: Machine, block: str, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o700)
    terminal = opened(machine, VISUAL=str(editor))
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.type("E")
    terminal.wait_for("the editor has the terminal:")
    machine.call(machine.data, "block.splice", block_id=block, offset=0, insert="zero\n")
    terminal.type("2\r")
    terminal.wait_for("Merged 1 change")
    assert content(machine, block) == "zero\none\n2\nthree\n"
    terminal.type("u")
    terminal.wait_for("Took back")
    assert content(machine, block) == "zero\none\ntwo\nthree\n"


def test_find_click_resize_and_copy_work_in_a_terminal(machine: Machine, block: str) -> None:
    terminal = opened(machine)
    terminal.type("\x06")
    terminal.wait_for("FIND")
    terminal.type("three")
    terminal.wait_for("1 of 1")
    terminal.resize(60, 16)
    terminal.wait_for("1 of 1")
    terminal.type("\r")
    terminal.wait_for("NAVIGATE")
    terminal.type("y")
    terminal.wait_for("to the terminal's clipboard")
    assert b"\x1b]52;" in terminal.output
    row = next(at for at, line in enumerate(terminal.screen()) if "two" in line)
    column = terminal.screen()[row].index("two")
    for _ in range(2):
        terminal.type(f"\x1b[<0;{column + 1};{row + 1}M\x1b[<0;{column + 1};{row + 1}m")
    terminal.wait_for("EDIT")
    terminal.type("and ")
    wait_until(lambda: "and two" in content(machine, block), "what was typed has arrived")


def content(machine: Machine, block: str) -> str:
    return str(machine.call(machine.data, "block.read", block_id=block)["content"])
