"""`antiphon doctor --env`, in a terminal that answers and without one."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

from antiphon.cli.environment import EXTRAS
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import start_in_terminal
from tests.waiting import PATIENCE

ANSWERS = (3, 2, 2, 7, 3)
"""Columns behind five samples, of which the terminal draws the fourth six columns wide."""


def findings(said: str) -> dict[str, str | None]:
    return {one["name"]: one["found"] for one in json.loads(said)["environment"]}


def test_environment_without_a_terminal_names_extras_and_hides_keys(machine: Machine) -> None:
    key = {"OPENAI_API_KEY": "sk-secret"}
    said = machine.succeed("doctor", "--env", "--json", env=key).stdout
    found = findings(said)
    assert "secret" not in said and found["$OPENAI_API_KEY"] == "set"
    assert found["$GEMINI_API_KEY"] is None and found["@gpt"] == "openai"
    assert found["terminal"] is None and found["answers of the terminal"] is None
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].keys() - {"dev", "docs", "models"}
    assert extras == EXTRAS.keys()
    assert {f"antiphon[{one}]" for one in extras} <= found.keys()
    assert not machine.data.exists()


def test_environment_in_a_terminal_says_what_that_has_answered(machine: Machine) -> None:
    command = [ANTIPHON, "doctor", "--env", "--json"]
    terminal, process = start_in_terminal(
        command, env={**machine.env, "NO_COLOR": "1"}, cwd=machine.project, forks=True
    )
    said = b""
    while b"\x1b[c" not in said:
        said += os.read(terminal, 4096)
    columns = "".join(f"\x1b[1;{column}R" for column in ANSWERS)
    os.write(terminal, f"{columns}\x1b[?0u\x1b[?62;52;22c".encode())
    while not said.rstrip().endswith(b"}]}"):
        said += os.read(terminal, 4096)
    assert process.wait(PATIENCE) == 0
    os.close(terminal)
    found = findings(said.rpartition(b"\x1b[c")[2].decode())
    assert found["width of characters"] == "not as counted: 👩‍👩‍👧"
    assert (found["keys"], found["clipboard"], found["colours"]) == ("extended", "OSC 52", None)
    assert str(found["terminal"]).startswith("xterm-256color")
