"""Completion in real shells, and what a completion imports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.machine import ANTIPHON, Machine

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(antiphon completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], "autoload compinit; compinit -u; . <(antiphon completion zsh)"),
    "fish": (["fish", "--no-config"], "antiphon completion fish | source"),
}
TYPED = {
    "antiphon comp": "antiphon completion",
    "antiphon completion z": "antiphon completion zsh",
    "antiphon export --form": "antiphon export --format",
    "antiphon export --format mark": "antiphon export --format markdown",
    "antiphon import REA": "antiphon import README.md",
    "antiphon READ": "antiphon README.md",
    "antiphon tail verse-": "antiphon tail verse-two",
    "antiphon call kernel.inv": "antiphon call kernel.invite",
    "antiphon drift mer": "antiphon drift merge",
}
"""What is typed before Tab, and what stands there then."""

HEAVY = ("pydantic", "asyncio", "textual", "rich", "websockets")
"""Modules that are imported by what a command does, not by its name."""


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_completes_commands_options_choices_files_and_names(
    machine: Machine, shell: str
) -> None:
    program, script = SHELLS[shell]
    if shutil.which(program[0]) is None:
        pytest.skip(f"{shell} is not installed")
    machine.succeed("call", "context.create", json.dumps({"label": "verse-two"}))
    path = f"{Path(ANTIPHON).parent}{os.pathsep}{machine.env['PATH']}"
    env = {"PATH": path, "PS1": "$ ", "TERM": "xterm"}
    terminal = machine.terminal(program=program, env=env, cols=100)
    terminal.type(f"{script}; clear; echo rea''dy\r")
    terminal.wait_for("ready\n")
    for typed, expected in TYPED.items():
        terminal.type(f"{typed}\t")
        terminal.wait_for(expected)
        terminal.press("ctrl+u")
        terminal.wait_for(partial(lacks, expected))


def test_names_are_those_of_a_kernel_that_runs_and_none_is_started(machine: Machine) -> None:
    assert complete(machine, "antiphon", "tail", "") == []
    assert not machine.data.exists()
    machine.succeed("call", "context.create", json.dumps({"label": "verse-two"}))
    assert complete(machine, "antiphon", "tail", "v") == ["plain,verse-two"]
    assert complete(machine, "antiphon", "tail", "--url", "ws://localhost:1/sync", "") == []


def test_command_line_imports_nothing_heavy_before_a_command_is_chosen() -> None:
    code = f"import sys, antiphon.cli.commands; print(*{set(HEAVY)} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def lacks(text: str, screen: str) -> bool:
    return text not in screen


def complete(machine: Machine, *words: str) -> list[str]:
    """Return what a shell is told for the last word."""
    env = {
        "_ANTIPHON_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    return machine.run(env=env).stdout.split()
