"""The demo with a real model on this machine: a person writes with it, and it is stopped."""

from __future__ import annotations

from typing import Any

from tests.e2e.machine import Machine
from tests.local_model import LIMIT, needs_local_model
from tests.waiting import wait_until

pytestmark = needs_local_model


def test_person_types_into_the_local_demo_in_a_terminal(machine: Machine) -> None:
    typed = "zebracrossing"
    terminal = machine.terminal("demo", "--local")
    terminal.wait_for("live")
    data = machine.kernel().data

    def answer() -> dict[str, Any] | None:
        listed = machine.call(data, "block.list", role="model", kind="text")["blocks"]
        return machine.call(data, "block.read", block_id=listed[0]["block_id"]) if listed else None

    wait_until(answer, "the model begins", LIMIT)
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.press("enter")
    terminal.wait_for("EDIT")
    terminal.type(typed)
    terminal.wait_for(typed)
    wait_until(lambda: typed in (answer() or {}).get("content", ""), "it is in the kernel")
    machine.call(data, "turn.interrupt")
    written = answer()
    assert written is not None and written["status"] in ("done", "error")
    assert written["content"].count(typed) == 1
    terminal.press("escape")
    terminal.wait_for("NAVIGATE")
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
