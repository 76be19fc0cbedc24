"""One line lets somebody in: from another terminal, as somebody of their own."""

from __future__ import annotations

import json
import re
import shlex
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.e2e.machine import Machine, shown_by_ps

LINE = re.compile(r"antiphon join (ws://127\.0\.0\.1:[0-9]+/sync\?token=([A-Za-z0-9_-]{43}))\n")


def invited(machine: Machine, *arguments: str) -> tuple[str, str]:
    """Address and token of a new invitation."""
    done = machine.succeed("invite", *arguments)
    found = LINE.fullmatch(done.stdout)
    assert found, done.stdout
    assert found[2] not in done.stderr
    return found[1], found[2]


def everything_in(folder: Path) -> Iterable[tuple[Path, bytes]]:
    return ((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def members(machine: Machine) -> dict[str, dict[str, Any]]:
    listed = machine.call(machine.data, "kernel.members")["members"]
    return {one["username"]: one for one in listed}


def test_invited_viewer_joins_as_somebody_and_cannot_write(machine: Machine) -> None:
    url, _ = invited(machine, "--role", "viewer", "--name", "vera")
    machine.call(machine.data, "block.create", role="user", kind="text", content="Hello all")
    terminal = machine.terminal("join", url, cols=100)
    terminal.wait_for("Hello all")
    terminal.wait_for("viewer")
    assert [one["via"] for one in members(machine)["vera"]["sessions"]][:1] == ["tcp"]
    terminal.type("x")
    terminal.wait_for("You are a viewer")
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0


def test_token_is_in_no_process_list_and_in_no_file(machine: Machine) -> None:
    url, token = invited(machine, "--role", "editor", "--name", "ed")
    terminal = machine.terminal("join", url)
    terminal.wait_for("WRITE")
    shown = shown_by_ps()
    assert b"antiphon" in shown
    assert token.encode() not in shown
    terminal.wait_for("live")
    assert members(machine)["ed"]["sessions"]
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
    for folder in (machine.project, machine.home):
        for path, content in everything_in(folder):
            assert token.encode() not in content, path


def test_token_need_not_be_an_argument(machine: Machine) -> None:
    url, token = invited(machine, "--role", "editor", "--name", "ed")
    bare = url.partition("?")[0]
    by_environment = machine.terminal("join", bare, env={"ANTIPHON_TOKEN": token})
    prompted, from_input = machine.terminal("join", bare), machine.terminal("join", "-")
    prompted.wait_for("Token:")
    prompted.type(f"{token}\r")
    from_input.wait_for("Invitation:")
    from_input.type(f"antiphon join {url}\r")
    for terminal in (by_environment, prompted, from_input):
        terminal.wait_for("WRITE")
        terminal.wait_for("live")
        assert token not in terminal.text
    assert members(machine)["ed"]["sessions"]


def test_used_up_invitation_knows_who_used_it(machine: Machine) -> None:
    url, _ = invited(machine, "--role", "editor", "--uses", "1")
    for _ in range(2):
        terminal = machine.terminal("join", url)
        terminal.wait_for("live")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
    (one,) = machine.call(machine.data, "kernel.invites")["invitations"]
    assert (one["username"], one["uses"], one["state"]) == ("guest", 1, "used_up")


def test_store_of_credentials_is_private(machine: Machine) -> None:
    done = machine.run("invite", "--role", "editor", "--name", "ed", "--expires", "never", "--json")
    made = json.loads(done.stdout)
    assert made["username"] == "ed" and "expires" not in made
    assert shlex.split(made["join"])[:2] == ["antiphon", "join"]
    assert made["token"] in made["join"]
    refused = machine.run("invite", "--role", "viewer", "--name", "ed")
    assert refused.returncode == 1 and "kernel.role" in refused.stderr
    for name in ("auth.db", "kernel.json", "kernel.log"):
        mode = (machine.data / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600, name
