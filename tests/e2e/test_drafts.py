"""Two people in real terminals: what is in a composer is what its owner typed there."""

from __future__ import annotations

import json
import threading

from tests.e2e.machine import Guest, Machine

WITH_COMMAND = "!id > PWNED #" + "\n" * 40


def draft_of(machine: Machine, text: str) -> str | None:
    for block in machine.call(machine.data, "block.list", role="user")["blocks"]:
        read = machine.call(machine.data, "block.read", block_id=block["block_id"])
        if read["content"] == text:
            return str(block["block_id"])
    return None


def test_editor_puts_no_command_into_the_owners_composer(machine: Machine) -> None:
    owner = machine.terminal()
    owner.wait_for("WRITE")
    owner.wait_for("live")
    eve = Guest(machine, "editor", "eve")
    theirs = machine.terminal("join", eve.url, env=eve.env, cwd=eve.home)
    theirs.wait_for("live")
    owner.type("thank you")
    theirs.wait_for("› thank you")
    draft = draft_of(machine, "thank you")
    assert draft is not None
    answers: list[tuple[int, str]] = []

    def call(tool: str, **params: object) -> tuple[int, str]:
        """Exit code and what was said on stderr."""
        done = eve.run("call", tool, json.dumps(params), "--url", eve.url, "--json")
        return done.returncode, done.stderr

    def attack() -> None:
        for params in (
            {"block_id": draft, "offset": 0, "insert": WITH_COMMAND},
            {"block_id": draft, "offset": 0, "insert": "!id > PWNED #"},
        ):
            answers.append(call("block.splice", **params))
        edit = {"op": "insert", "line": 0, "content": "!id > PWNED"}
        answers.append(call("block.edit", block_id=draft, operations=[edit]))

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
    (message,) = machine.call(machine.data, "block.list")["blocks"]
    read = machine.call(machine.data, "block.read", block_id=message["block_id"])
    assert (read["content"], message["status"]) == ("thank you very much", "done")
    assert not (machine.project / "PWNED").exists()
    # What has been sent is everybody's, as before.
    insert = {"block_id": message["block_id"], "offset": 0, "insert": "And "}
    assert call("block.splice", **insert)[0] == 0
    owner.wait_for("And thank you very much")
