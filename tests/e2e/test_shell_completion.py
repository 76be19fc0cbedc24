"""Completion in real shells."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.machine import ANTIPHON, Machine
from tests.waiting import wait_until

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(antiphon completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], "autoload compinit; compinit -u; . <(antiphon completion zsh)"),
    "fish": (["fish", "--no-config"], "antiphon completion fish | source"),
}
TYPED = {
    "antiphon import REA": "antiphon import README.md",
    "antiphon tail verse-": "antiphon tail verse-two",
}
"""Text that is typed before Tab, and the line then: of each kind that a shell treats in its way."""

WORDS = {
    ("READ",): ["file,READ"],
    ("completion", "z"): ["plain,zsh"],
    ("export", "--form"): ["plain,--format"],
    ("export", "--format", "mark"): ["plain,markdown"],
    ("tail", "v"): ["plain,verse-two"],
    ("tail", "--url", "ws://localhost:1/sync", ""): [],
    ("call", "kernel.inv"): ["plain,kernel.invite", "plain,kernel.invites"],
    ("drift", "mer"): ["plain,merge"],
}
"""Words of a line, and what a shell is told of the last one."""


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_completes_commands_files_and_names(machine: Machine, shell: str) -> None:
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


def test_words_are_completed_with_names_of_a_kernel_that_runs_and_none_is_started(
    machine: Machine,
) -> None:
    assert complete(machine, "tail", "") == []
    assert not machine.data.exists()
    machine.succeed("call", "context.create", json.dumps({"label": "verse-two"}))
    for words, wanted in WORDS.items():
        # A kernel that is slow to answer is not waited for.
        wait_until(lambda: complete(machine, *words) == wanted, f"{wanted} for {words}")  # noqa: B023


def lacks(text: str, screen: str) -> bool:
    return text not in screen


def complete(machine: Machine, *words: str) -> list[str]:
    """Return what a shell is told for the last word."""
    env = {
        "_ANTIPHON_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(("antiphon", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return machine.run(env=env).stdout.split()
