"""A cell in a real terminal: edited in another program, found, clicked, resized and copied."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.e2e.terminal import Terminal
from tests.waiting import wait_until

EDITOR = """#!/bin/sh
printf 'the editor has the terminal: '
read answer
sed -i "s/two/$answer/" "$1"
"""


@pytest.fixture
def data(machine: Machine) -> Path:
    return machine.data


@pytest.fixture
def block(machine: Machine, data: Path) -> str:
    cell = {"role": "user", "kind": "text", "content": "one\ntwo\nthree\n", "status": "done"}
    return str(machine.call(data, "block.create", **cell)["block_id"])


def opened(machine: Machine, **env: str) -> Terminal:
    terminal = machine.terminal("join", env=env)
    terminal.wait_for("three")
    terminal.wait_for("live")
    return terminal


def opened_in_edit(machine: Machine) -> Terminal:
    """The app with the cursor in its last cell."""
    terminal = opened(machine)
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.press("enter")
    terminal.wait_for("EDIT")
    return terminal


def test_editor_gets_the_terminal_and_its_result_is_merged(
    machine: Machine, data: Path, block: str, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o700)
    terminal = opened(machine, VISUAL=str(editor))
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.type("E")
    terminal.wait_for("the editor has the terminal:")
    machine.call(data, "block.splice", block_id=block, offset=0, insert="zero\n")
    terminal.type("2\r")
    terminal.wait_for("Merged 1 change")
    read = machine.call(data, "block.read", block_id=block)
    assert read["content"] == "zero\none\n2\nthree\n"
    terminal.type("u")
    terminal.wait_for("Took back")
    read = machine.call(data, "block.read", block_id=block)
    assert read["content"] == "zero\none\ntwo\nthree\n"


def test_find_click_resize_and_copy_work_in_a_terminal(
    machine: Machine, data: Path, block: str
) -> None:
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
    wait_until(lambda: "and two" in _content(machine, data, block), "what was typed has arrived")


def test_paste_of_200_kilobytes_into_a_cell_is_whole(
    machine: Machine, data: Path, block: str
) -> None:
    terminal = opened_in_edit(machine)
    pasted = "".join(f"pasted line {number}\n" for number in range(13_000))
    assert len(pasted) > 200_000
    terminal.type(f"\x1b[200~{pasted}\x1b[201~end")
    wait_until(lambda: f"{pasted}end" in _content(machine, data, block), "the kernel has all")


def test_text_typed_while_the_kernel_does_not_answer_arrives_when_it_does(
    machine: Machine, data: Path, block: str
) -> None:
    terminal = opened_in_edit(machine)
    kernel = machine.kernel().pid
    os.kill(kernel, signal.SIGSTOP)
    try:
        terminal.type("typed meanwhile")
        terminal.wait_for("typed meanwhile")
        terminal.wait_for("not answering")
    finally:
        os.kill(kernel, signal.SIGCONT)
    wait_until(lambda: "typed meanwhile" in _content(machine, data, block), "it has arrived")
    terminal.wait_for("live")


def _content(machine: Machine, data: Path, block: str) -> str:
    return str(machine.call(data, "block.read", block_id=block)["content"])
