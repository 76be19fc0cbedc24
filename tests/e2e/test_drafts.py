"""Two people in real terminals: what is in a composer is what its owner typed there."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.machine import Machine

WITH_COMMAND = "!id > PWNED #" + "\n" * 40


class Editor:
    """Somebody who was invited as an editor, with a home of their own."""

    def __init__(self, machine: Machine) -> None:
        made = machine.succeed("invite", "--role", "editor", "--name", "eve", "--json")
        self.url = json.loads(made.stdout)["join"].split()[-1]
        self.home = machine.home / "eve"
        self.home.mkdir()
        self.env = {f"XDG_{kind}_HOME": str(self.home / kind) for kind in ("STATE", "CONFIG")}
        self.env |= {"HOME": str(self.home)}
        self._machine = machine

    def call(self, tool: str, params: Mapping[str, Any]) -> tuple[int, str]:
        """Exit code and what was said on stderr."""
        arguments = ("call", tool, json.dumps(params), "--url", self.url, "--json")
        done = self._machine.run(*arguments, env=self.env, cwd=self.home)
        return done.returncode, done.stderr


@pytest.fixture
def data(machine: Machine) -> Path:
    return machine.data


def draft_of(machine: Machine, data: Path, text: str) -> str | None:
    for block in machine.call(data, "block.list", role="user")["blocks"]:
        read = machine.call(data, "block.read", block_id=block["block_id"])
        if read["content"] == text:
            return str(block["block_id"])
    return None


def test_editor_puts_no_command_into_the_owners_composer(machine: Machine, data: Path) -> None:
    owner = machine.terminal()
    owner.wait_for("WRITE")
    owner.wait_for("live")
    eve = Editor(machine)
    theirs = machine.terminal("join", eve.url, env=eve.env, cwd=eve.home)
    theirs.wait_for("live")
    owner.type("thank you")
    theirs.wait_for("› thank you")
    draft = draft_of(machine, data, "thank you")
    assert draft is not None
    answers: list[tuple[int, str]] = []

    def attack() -> None:
        for params in (
            {"block_id": draft, "offset": 0, "insert": WITH_COMMAND},
            {"block_id": draft, "offset": 0, "insert": "!id > PWNED #"},
        ):
            answers.append(eve.call("block.splice", params))
        edit = {"op": "insert", "line": 0, "content": "!id > PWNED"}
        answers.append(eve.call("block.edit", {"block_id": draft, "operations": [edit]}))

    attacking = threading.Thread(target=attack)
    attacking.start()
    for letter in " very much":
        owner.type(letter)
    attacking.join(60)
    assert [code for code, _ in answers] == [1, 1, 1]
    assert all("is a draft of" in said for _, said in answers)
    owner.wait_for("› thank you very much")
    owner.press("enter")
    theirs.wait_for(lambda text: "thank you very much" in text and "› thank" not in text)
    (message,) = machine.call(data, "block.list")["blocks"]
    read = machine.call(data, "block.read", block_id=message["block_id"])
    assert (read["content"], message["status"]) == ("thank you very much", "done")
    assert not (machine.project / "PWNED").exists()
    # What has been sent is everybody's, as before.
    insert = {"block_id": message["block_id"], "offset": 0, "insert": "And "}
    assert eve.call("block.splice", insert)[0] == 0
    owner.wait_for("And thank you very much")
