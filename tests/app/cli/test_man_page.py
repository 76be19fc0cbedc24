"""The manual page is what the commands say now, and `man` shows it without a warning."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from antiphon.cli.commands import antiphon
from tests.app.cli.man_page import MAN_PAGE, man_page


def test_man_page_is_what_the_commands_say_now() -> None:
    assert MAN_PAGE.read_text("utf-8") == man_page(), "run make docs"


@pytest.mark.parametrize(
    "command",
    [["man", "--warnings", "-l"], ["mandoc", "-T", "lint", "-W", "warning"]],
    ids=["man", "mandoc"],
)
def test_man_page_has_no_warning_and_a_heading_for_every_command(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    env = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"}
    shown = subprocess.run([*command, MAN_PAGE], env=env, capture_output=True, check=True)
    assert shown.stderr == b""
    if command[0] == "mandoc":
        assert shown.stdout == b""
        return
    told = [line.split() for line in shown.stdout.decode().splitlines()]
    named = {words[1] for words in told if len(words) > 1 and words[0] == "antiphon"}
    assert antiphon.commands.keys() <= named
