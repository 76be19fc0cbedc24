"""A file that is named on the command line: shown at its line, edited, and written to disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/etc/hostname", "needs a terminal"),
        ("src", "there is no command"),
        ("./src", "a folder"),
        ("src/missing.py:3", "no file"),
    ],
)
def test_what_is_no_file_of_the_project_is_told(machine: Machine, name: str, said: str) -> None:
    (machine.project / "src").mkdir()
    done = machine.run(name)
    assert done.returncode == 2
    assert said in done.stderr.lower().replace("no such command", "there is no command")


def test_file_outside_is_asked_about_shown_at_its_line_and_written(
    machine: Machine, tmp_path: Path
) -> None:
    file = machine.project / "src" / "a.txt"
    file.parent.mkdir()
    lines = [f"line {number}\n" for number in range(1, 101)]
    file.write_text("".join(lines))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    terminal = machine.terminal(f"{file}:60", cwd=elsewhere, cols=200)
    # The terminal breaks the line anywhere.
    terminal.wait_for(lambda text: "Openitwithakernelof" in "".join(text.split()))
    terminal.type("y\r")
    terminal.wait_for(" 60  line 60")
    terminal.wait_for("NAVIGATE")
    terminal.type("i")
    terminal.wait_for("EDIT")
    terminal.type("X")
    lines[59] = "Xline 60\n"
    wait_until(lambda: file.read_text() == "".join(lines), "what was typed is on disk")
    terminal.press("escape")
    terminal.wait_for("NAVIGATE")
    terminal.press("escape")
    terminal.wait_for("WRITE")
