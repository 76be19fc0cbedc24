"""Kernels elsewhere through a plain sshd: `antiphon join ssh://…`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.cli.errors import CommandError
from antiphon.cli.ssh_join import SshTarget, parse_ssh_url
from tests.e2e.machine import ANTIPHON
from tests.e2e.sharing import SharedProject, message
from tests.e2e.sshd import Sshd, needs_sshd
from tests.waiting import wait_until


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SharedProject]:
    one = SharedProject(tmp_path / "there")
    yield one
    one.close()


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
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
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
