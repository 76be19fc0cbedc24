"""A backup is restored while somebody has the document open and goes on writing."""

from __future__ import annotations

import re

from tests.e2e.machine import Machine
from tests.e2e.sharing import message


def test_restore_with_open_app_notifies_keeps_text_and_rejoins(machine: Machine) -> None:
    data = machine.data
    machine.call(data, "block.create", **message("some text"))
    backup = machine.home / "backup.db"
    assert machine.run("backup", str(backup)).returncode == 0
    terminal = machine.terminal("join", cols=120, rows=40)
    terminal.wait_for("some text")
    terminal.wait_for("live")
    terminal.press("up", "enter")
    terminal.wait_for("EDIT")
    machine.end_kernel()
    terminal.wait_for("offline")
    terminal.type("never sent ")
    terminal.wait_for("never sent some text")
    assert machine.run("restore", str(backup)).returncode == 0
    machine.call(data, "session.whoami")
    terminal.wait_for("This document was restored")
    terminal.wait_for("refused: ")
    (kept,) = machine.home.rglob("refused/*.md")
    assert "never sent " in kept.read_text()
    terminal.press("ctrl+p")
    terminal.type("join again")
    terminal.wait_for(lambda text: bool(re.search(r"Join again *$", text, re.MULTILINE)))
    terminal.press("enter")
    terminal.wait_for("live")
    terminal.wait_for(lambda text: "some text" in text and "never sent" not in text)
    terminal.type("hello again")
    terminal.wait_for("hello again")
