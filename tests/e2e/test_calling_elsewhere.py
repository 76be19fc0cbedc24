"""The command line of somebody who was invited: another home, another folder, their own role."""

from __future__ import annotations

import json
import subprocess

from tests.e2e.machine import ANTIPHON, Guest, Machine, shown_by_ps
from tests.e2e.sharing import message
from tests.waiting import wait_until


def said(machine: Machine) -> list[str]:
    ids = [one["block_id"] for one in machine.call(machine.data, "block.list")["blocks"]]
    return [machine.call(machine.data, "block.read", block_id=one)["content"] for one in ids]


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


def test_token_of_a_command_is_in_no_process_list(machine: Machine) -> None:
    guest = Guest(machine, "viewer", "vera")
    machine.call(machine.data, "block.create", **message("The first verse"))
    printed = guest.home / "printed"
    for arguments in (["--url", guest.url], [f"--url={guest.url}"]):
        with (
            printed.open("wb") as output,
            subprocess.Popen(
                [ANTIPHON, "tail", *arguments],
                env={**machine.env, **guest.env},
                cwd=guest.home,
                stdout=output,
            ) as tail,
        ):
            try:
                wait_until(lambda: b"verse" in printed.read_bytes(), "it is printed")
                shown = shown_by_ps()
                assert b"tail" in shown
                assert guest.token.encode() not in shown
            finally:
                tail.terminate()
