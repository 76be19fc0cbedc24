"""`antiphon replay` in a real terminal."""

from __future__ import annotations

from tests.e2e.machine import Machine
from tests.e2e.sharing import message


def test_context_is_replayed_forked_and_left(machine: Machine) -> None:
    made = machine.call(machine.data, "block.create", **message("one\ntwo"))
    edit = {"block_id": made["block_id"], "offset": 7, "insert": "\nthree"}
    machine.call(machine.data, "block.splice", **edit)
    terminal = machine.terminal("replay", "default", "--max-pause", "0.2")
    terminal.wait_for("three")
    terminal.wait_for("‖ 0:00 / 0:00")
    terminal.press("enter")
    terminal.wait_for("default-fork")
    terminal.wait_for("live")
    terminal.quit()
