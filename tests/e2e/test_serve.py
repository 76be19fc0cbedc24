"""`antiphon serve` in the foreground of a terminal."""

from __future__ import annotations

import json

from tests.e2e.machine import Machine


def test_serve_command_prints_address_and_ends_on_ctrl_c(machine: Machine) -> None:
    terminal = machine.terminal("serve")
    terminal.wait_for("Ctrl+C ends it")
    assert machine.kernel().data == machine.data
    assert machine.run("call", "session.whoami").stderr == "", "it is the project's kernel"
    terminal.press("ctrl+c")
    assert terminal.wait_for_end() == 0


def test_json_is_one_line_with_everything_a_client_needs(machine: Machine) -> None:
    terminal = machine.terminal("serve", "--json", "--port", "0", cols=600)
    shown = terminal.wait_for("}")
    address = json.loads(shown.strip())
    assert {"pid", "kernel", "sync", "http", "socket", "token"} <= set(address)
    assert address["pid"] == machine.kernel().pid


def test_serve_command_for_held_folder_names_holder(machine: Machine) -> None:
    first = machine.terminal("serve")
    first.wait_for("Ctrl+C ends it")
    second = machine.run("serve")
    assert second.returncode == 4
    assert f"process {machine.kernel().pid}" in second.stderr


def test_serve_help_lists_kernel_options(machine: Machine) -> None:
    shown = machine.run("serve", "--help")
    assert shown.returncode == 0
    assert "--idle" in shown.stdout
