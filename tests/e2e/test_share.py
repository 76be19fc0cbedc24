"""A project shared over SSH, and kernels elsewhere: people who come, write, go and come back."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from antiphon.cli.errors import CommandError
from antiphon.cli.join import SshTarget, parse_ssh_url
from tests.e2e.machine import ANTIPHON
from tests.e2e.sharing import RelayThread, SharedProject, message, needs_openssh
from tests.e2e.sshd import Sshd, needs_sshd
from tests.e2e.terminal import Terminal, shows_words
from tests.recordings import numbered_recording
from tests.waiting import wait_until


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SharedProject]:
    one = SharedProject(tmp_path)
    yield one
    one.close()


@needs_openssh
def test_two_guests_and_the_owner_type_into_a_stream_and_nothing_is_lost(
    project: SharedProject,
) -> None:
    """One of the guests is far away: each key and each frame takes 50 ms."""
    recorded = numbered_recording(
        project.home / "aria.jsonl", model="aria", words=4_000, pause_ms=250
    )
    demo = ("demo", "--play", str(recorded.path), "--data", str(project.data))
    owner = project.terminal(*demo)
    owner.wait_for(shows_words)
    project.share("--data", str(project.data))
    for name in ("bo", "cy"):
        project.share(
            "--keys", f"{project.key(name)}.pub", "--name", name, "--data", str(project.data)
        )
    far = RelayThread(project.port, delay=0.05)
    bo, cy = project.guest_terminal("bo", port=far.port), project.guest_terminal("cy")
    typing = (owner, "zebra"), (bo, "mango"), (cy, "quilt")
    for terminal, _ in typing:
        terminal.wait_for(shows_words)
        terminal.edit_last_cell()
    bo.resize(120, 40)
    for letters in itertools.zip_longest(*(word for _, word in typing)):
        for (terminal, _), letter in zip(typing, letters, strict=True):
            terminal.type(letter)

    def content() -> str:
        (block,) = project.tool("block.list", role="model", kind="text")["blocks"]
        return str(project.tool("block.read", block_id=block["block_id"])["content"])

    def typed(text: str) -> list[str]:
        """Return the letters that are not in the model's words, in alphabetical order."""
        return sorted(set_apart for set_apart in text if set_apart not in "word0123456789 \n")

    wanted = typed("".join(word for _, word in typing))
    wait_until(lambda: typed(content()) == wanted, "every letter is there once")
    bo.wait_for(lambda text: "EDIT" in text.split("\n")[39])
    bo.press("escape")
    bo.wait_for("NAVIGATE")
    bo.press("i")
    bo.wait_for("WRITE")
    bo.type("ü€👩 typed")
    bo.wait_for("ü€👩 typed")
    bo.quit()
    cy.close()
    bo.close()
    far.close()


@needs_openssh
def test_guests_are_told_how_their_connection_has_ended_and_come_back_to_the_same_place(
    project: SharedProject,
) -> None:
    for name in ("bo", "cy"):
        project.let_in(name)
    calls = [
        json.dumps({"id": 1, "tool": "block.create", "params": message(f"message {number}")})
        for number in range(30)
    ]
    project.succeed("call", "--jsonl", stdin="\n".join(calls))
    relay = RelayThread(project.port)
    first, other = project.guest_terminal("bo", port=relay.port), project.guest_terminal("cy")
    with first, other:
        first.wait_for("message 29")
        first.type("half a sentence")
        first.wait_for("half a sentence")
        tail = _top(first)
        first.press("up", "pageup")
        wait_until(lambda: _top(first) not in ("", tail), "an earlier page")
        seen = _settled_top(first)
        relay.stop()
        other.wait_for("live")
        other.type("still here")
        other.wait_for("still here")
        relay.close()
        first.wait_for_end()
        wait_until(lambda: not project.sessions("bo"), "the end of the session")
        os.kill(other.process.pid, signal.SIGKILL)
        other.wait_for_end()
        wait_until(lambda: not project.sessions("cy"), "the end of the other session")
    with project.guest_terminal("bo") as second:
        second.wait_for("half a sentence")
        wait_until(lambda: _top(second) == seen, f"the place: {seen!r}, not {_top(second)!r}")
        os.kill(json.loads((project.data / "kernel.json").read_text())["pid"], signal.SIGKILL)
        second.wait_for_end()
        assert "The kernel has ended, and the shared session with it" in second.text
    wait_until(lambda: not (project.data / "ssh.json").exists(), "the end of the SSH host")


@needs_openssh
def test_unknown_key_is_let_in_by_the_owner_and_its_sessions_change_roles_end_and_are_kicked(
    project: SharedProject,
) -> None:
    project.share("--ask")
    project.let_in("cy")
    project.key("bo")
    owner = project.terminal(cols=120)
    owner.wait_for("WRITE")
    with project.guest_terminal("bo", "-lbo") as terminal:
        terminal.wait_for("Waiting for the owner to let you in")
        owner.wait_for("wants to join as bo")
        owner.press("ctrl+p")
        owner.type("let somebody")
        owner.wait_for("Let somebody in who waits")
        owner.press("enter")
        owner.wait_for("e editor")
        owner.press("v")
        terminal.wait_for("viewer · live")
        keys = {one["username"]: one for one in project.tool("key.list")["keys"]}
        assert (keys["bo"]["role"], keys["bo"]["state"]) == ("viewer", "good")
        terminal.type("x")
        terminal.wait_for("You are a viewer")
        promoted = project.succeed("share", "--promote", "bo").stdout
        assert promoted.startswith("bo is an editor now. ")
        terminal.wait_for("editor · live")
        terminal.press("i")
        terminal.wait_for("WRITE")
        terminal.type("half a sentence")
        terminal.wait_for("half a sentence")
        assert project.share("--demote", "bo")["role"] == "viewer"
        terminal.wait_for("viewer · live")
        project.share("--promote", "bo")
        terminal.wait_for("editor · live")
        terminal.type(" and its end")
        terminal.wait_for("half a sentence and its end")
        listed = project.share("--list")["sessions"]
        (session,) = [one for one in listed if one["username"] == "bo"]
        assert (session["role"], session["via"]) == ("editor", "ssh")
        project.share("--end", session["session"][-8:], "--reason", "lunch")
        assert terminal.wait_for_end() == 1
        assert "ended your session: lunch" in terminal.text
    with project.guest_terminal("bo") as terminal:
        terminal.wait_for("live")
        kicked = project.succeed("share", "--kick", "bo").stdout
        assert kicked.startswith("bo is out until ")
        assert terminal.wait_for_end() == 1
    log = project.succeed("log").stdout
    assert "bo joined via ssh" in log and "ended a session of bo" in log
    assert "added the key SHA256:" in log
    assert "editor  kicked, may come again " in project.succeed("share", "--list").stdout
    assert project.guest("bo", "export").returncode != 0
    for arguments, code in (
        (("--promote", "nobody"), 1),
        (("--kick", project.tool("session.whoami")["username"]), 1),
        (("--promote", "bo", "--kick", "bo"), 2),
        (("--promote", "bo", "--reason", "x"), 2),
    ):
        assert project.run("share", *arguments).returncode == code, arguments


@needs_openssh
def test_keys_of_a_forge_are_read_and_checked(project: SharedProject, tmp_path: Path) -> None:
    served = tmp_path / "forge"
    served.mkdir()
    (served / "Bo.keys").write_bytes(Path(f"{project.key('bo')}.pub").read_bytes() * 2)
    (served / "eve.keys").write_text("<html>nothing here</html>\n")
    (served / "big.keys").write_text("x" * 300_000)
    handler = partial(SimpleHTTPRequestHandler, directory=str(served))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, ExitStack() as stack:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        stack.callback(server.shutdown)
        project.env["ANTIPHON_FORGE"] = f"http://127.0.0.1:{server.server_port}"
        told = project.share("--github", "Bo", "--role", "viewer")
        assert told["line"].endswith(" bo@localhost")
        assert [(one["username"], one["role"]) for one in told["keys"]] == [("bo", "viewer")]
        for user, why in (
            ("eve", "expected one line"),
            ("big", "more than"),
            ("nobody", "404"),
            ("../x", "cannot be a user"),
        ):
            refused = project.run("share", "--github", user)
            assert refused.returncode == 1 and why in refused.stderr, refused.stderr
        again = project.run("share", "--keys", f"{project.key('eve')}.pub", "--name", "bo")
        assert again.returncode == 0
    stolen = project.keys / "stolen.pub"
    stolen.write_text(Path(f"{project.key('mal')}.pub").read_text().replace("mal@there", "bo@x"))
    refused = project.run("share", "--keys", str(stolen))
    assert refused.returncode == 1 and "known here already" in refused.stderr
    me, own = project.tool("session.whoami")["username"], project.keys / "own.pub"
    own.write_text(stolen.read_text().replace("bo@x", f"{me}@x"))
    refused = project.run("share", "--keys", str(own))
    assert refused.returncode == 1
    assert f"{me} is your own name: give the key another name (--name NAME" in refused.stderr


def _top(terminal: Terminal) -> str:
    """The first row below the header that says something."""
    return next((line for line in terminal.screen()[1:] if "message" in line), "")


def _settled_top(terminal: Terminal) -> str:
    """The same, once a key that changes nothing has been answered."""
    terminal.press("f1")
    terminal.wait_for("Esc closes this page")
    terminal.press("escape")
    terminal.wait_for("NAVIGATE")
    return _top(terminal)


@pytest.fixture
def sshd(project: SharedProject, tmp_path: Path) -> Iterator[Sshd]:
    path = f"{Path(ANTIPHON).parent}:{project.env['PATH']}"
    one = Sshd(tmp_path / "sshd", project.env | {"PATH": path})
    yield one
    one.cut()


@needs_sshd
def test_app_here_works_on_a_kernel_there_and_comes_back_when_the_line_does(
    project: SharedProject, sshd: Sshd
) -> None:
    here = {"PATH": f"{sshd.bin}:{project.env['PATH']}"}
    url = f"ssh://localhost:{sshd.port}{project.project}"
    terminal = project.terminal("join", url, env=here, cols=100, cwd=project.home)
    terminal.wait_for("live")
    project.tool("block.create", **message("from over there"))
    terminal.wait_for("from over there")
    sshd.cut()
    terminal.wait_for("offline")
    terminal.type("written meanwhile")
    sshd.start()
    terminal.wait_for("live")
    terminal.press("enter")

    def has_arrived() -> bool:
        return any(
            "written meanwhile" in project.tool("block.read", block_id=one["block_id"])["content"]
            for one in project.tool("block.list", role="user", kind="text")["blocks"]
            if one["status"] == "done"
        )

    wait_until(has_arrived, "the kernel has what was written meanwhile")
    terminal.quit()
    assert not list((project.home / "tmp").glob("antiphon-ssh-*"))
    wait_until(lambda: not _masters(project.home), "the end of ssh")


@needs_sshd
def test_join_over_ssh_that_cannot_be_says_why(project: SharedProject, sshd: Sshd) -> None:
    here = {"PATH": f"{sshd.bin}:{project.env['PATH']}"}
    for url, why in (
        (f"ssh://localhost:{sshd.port}/no/such/folder", "antiphon does not answer on localhost"),
        (f"ssh://nobody@localhost:{sshd.port}/", "ssh does not connect to localhost"),
    ):
        terminal = project.terminal("join", url, env=here, cols=200)
        assert terminal.wait_for_end() == 3
        assert why in terminal.text


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("ssh://host", SshTarget("host", None, None, None)),
        ("ssh://bo@host:22/", SshTarget("host", "bo", 22, None)),
        ("ssh://host/srv/it%20is", SshTarget("host", None, None, "/srv/it is")),
        ("ssh://[::1]:2/x", SshTarget("::1", None, 2, "/x")),
    ],
)
def test_address_over_ssh_is_read(url: str, target: SshTarget) -> None:
    assert parse_ssh_url(url) == target


def test_folder_of_an_address_is_one_word_for_the_shell_there() -> None:
    assert parse_ssh_url("ssh://h/a;reboot").command == "cd '/a;reboot' && antiphon join --address"
    assert parse_ssh_url("ssh://h/~/a b").command == "cd ~/'a b' && antiphon join --address"


@pytest.mark.parametrize(
    "url", ["ssh://", "ssh://-oProxyCommand=x/", "ssh://-l@h/", "ssh://h:x/", "ssh://h/?token=1"]
)
def test_address_that_is_none_or_an_option_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match=r"is no address"):
        parse_ssh_url(url)


def _masters(home: Path) -> list[str]:
    """Command lines of ssh processes whose control socket is in a folder of this test."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if os.fspath(home) in line and " -M " in line:
            found.append(line)
    return found
