"""One line lets somebody in: as somebody of their own, with the app and the command line."""

from __future__ import annotations

import json
import re
import shlex
import stat
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.e2e.machine import Guest, Machine, shown_by_ps
from tests.e2e.sharing import message as fields_of
from tests.waiting import wait_until

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


def test_token_is_in_no_process_list_and_in_no_file(machine: Machine) -> None:
    machine.call(machine.data, "block.create", **fields_of("The first verse"))
    url, token = invited(machine, "--role", "viewer", "--name", "vera")
    machine.forks = False
    for arguments in (["join", url], ["tail", f"--url={url}"]):
        terminal = machine.terminal(*arguments)
        terminal.wait_for("verse")
        shown = shown_by_ps()
        assert arguments[0].encode() in shown
        assert token.encode() not in shown
        assert members(machine)["vera"]["sessions"][0]["via"] == "tcp"
        if arguments[0] == "join":
            terminal.type("x")
            terminal.wait_for("You are a viewer")
        terminal.press("ctrl+q" if arguments[0] == "join" else "ctrl+c")
        assert terminal.wait_for_end() == 0
    for folder in (machine.project, machine.home):
        for path, content in everything_in(folder):
            assert token.encode() not in content, path


def test_token_need_not_be_an_argument(machine: Machine) -> None:
    url, token = invited(machine, "--role", "editor", "--name", "ed")
    bare = url.partition("?")[0]
    prompted, from_input = machine.terminal("join", bare), machine.terminal("join", "-")
    prompted.wait_for("Token:")
    prompted.type(f"{token}\r")
    from_input.wait_for("Invitation:")
    from_input.type(f"antiphon join {url}\r")
    for terminal in (prompted, from_input):
        terminal.wait_for("WRITE")
        terminal.wait_for("live")
        assert token not in terminal.text
    assert members(machine)["ed"]["sessions"]
    by_environment = ("call", "session.whoami", "--url", bare)
    assert '"ed"' in machine.succeed(*by_environment, env={"ANTIPHON_TOKEN": token}).stdout


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


def said(machine: Machine) -> list[str]:
    ids = [one["block_id"] for one in machine.call(machine.data, "block.list")["blocks"]]
    return [machine.content(one) for one in ids]


def test_command_line_of_somebody_invited_has_their_role(machine: Machine) -> None:
    vera, ed = Guest(machine, "viewer", "vera"), Guest(machine, "editor", "ed")
    sent = ed.run("send", "--url", ed.url, "--json", stdin="Hello from elsewhere")
    assert sent.returncode == 0, sent.stderr
    block = json.loads(sent.stdout)["block_id"]
    assert said(machine) == ["Hello from elsewhere"]

    here = {"ANTIPHON_URL": vera.url}
    who = json.loads(vera.run("call", "session.whoami", env=here).stdout)
    assert (who["username"], who["role"]) == ("vera", "viewer")
    assert "Hello from elsewhere" in vera.run("blame", block, env=here).stdout
    assert "ed  create" in " ".join(vera.run("history", block, env=here).stdout.split(" "))
    assert "Hello from elsewhere" in vera.run("export", env=here).stdout

    for refused in (
        vera.run("send", stdin="Me too", env=here),
        vera.run("call", "block.append", json.dumps({"block_id": block, "text": "!"}), env=here),
        vera.run("call", "session.whoami", "--as", "ed", env=here),
        ed.run("call", "kernel.invites", "--url", ed.url),
    ):
        assert refused.returncode == 1
        assert "ask the owner" in refused.stderr or "acts as somebody else" in refused.stderr
    assert said(machine) == ["Hello from elsewhere"]
    assert not (vera.home / ".antiphon").exists()


def test_commands_of_a_guest_are_one_client_until_the_invitation_is_revoked(
    machine: Machine,
) -> None:
    guest = Guest(machine, "editor", "ed")
    for _ in range(2):
        assert guest.run("call", "session.whoami", "--url", guest.url).returncode == 0
    (one,) = machine.call(machine.data, "kernel.invites")["invitations"]
    assert one["uses"] == 1
    for path in guest.home.rglob("*"):
        assert not path.is_file() or guest.token.encode() not in path.read_bytes()
    machine.call(machine.data, "kernel.revoke", invitation=1)
    done = guest.run("send", "--url", guest.url, stdin="Am I still here?")
    assert done.returncode == 1
    assert "revoked" in done.stderr and done.stderr.count("\n") == 1
    assert guest.token not in done.stderr
    assert said(machine) == []


WITH_COMMAND = "!id > PWNED #" + "\n" * 40


def draft_of(machine: Machine, text: str) -> str | None:
    for block in machine.call(machine.data, "block.list", role="user")["blocks"]:
        if machine.content(block["block_id"]) == text:
            return str(block["block_id"])
    return None


def test_editor_puts_no_command_into_the_owners_composer(machine: Machine) -> None:
    owner = machine.terminal()
    owner.wait_for("WRITE")
    owner.wait_for("live")
    eve = Guest(machine, "editor", "eve")
    owner.type("thank you")
    draft = wait_until(lambda: draft_of(machine, "thank you"), "the owner's draft")
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

    def sent() -> dict[str, Any] | None:
        (block,) = machine.call(machine.data, "block.list")["blocks"]
        return block if block["status"] == "done" else None

    message = wait_until(sent, "the message")
    assert machine.content(message["block_id"]) == "thank you very much"
    assert not (machine.project / "PWNED").exists()
    # What has been sent is everybody's, as before.
    insert = {"block_id": message["block_id"], "offset": 0, "insert": "And "}
    assert call("block.splice", **insert)[0] == 0
    owner.wait_for("And thank you very much")
