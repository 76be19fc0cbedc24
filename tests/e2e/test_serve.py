"""`antiphon serve` in the foreground of a terminal."""

from __future__ import annotations

import json

from tests.e2e.machine import Machine


def test_serve_command_prints_address_holds_its_folder_and_ends_on_ctrl_c(machine: Machine) -> None:
    terminal = machine.terminal("serve")
    terminal.wait_for("Ctrl+C ends it")
    assert machine.kernel().data == machine.data
    assert machine.run("call", "session.whoami").stderr == "", "it is the project's kernel"
    second = machine.run("serve")
    assert second.returncode == 4
    assert f"process {machine.kernel().pid}" in second.stderr
    terminal.press("ctrl+c")
    assert terminal.wait_for_end() == 0

    terminal = machine.terminal("serve", "--json", "--port", "0", cols=600)
    address = json.loads(terminal.wait_for("}").strip())
    assert {"pid", "kernel", "sync", "http", "socket", "token"} <= set(address)
    assert address["pid"] == machine.kernel().pid
    assert "--idle" in machine.succeed("serve", "--help").stdout
