"""The page about deployments: its files can be read, and name options and variables that exist."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from antiphon_kernel.daemon.cli import main
from antiphon_kernel.types.constants import STORE_VARIABLE

PAGE = (Path(__file__).parent.parent / "docs" / "deployment.md").read_text("utf-8")
PROGRAM = "/opt/antiphon/bin/antiphon"
UNITS = ("antiphon.service", "antiphon-backup.service", "antiphon-backup.timer")


def blocks(language: str) -> list[str]:
    """Return the contents of the page's blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def check_command(words: list[str]) -> None:
    """See that a command and every option of it exist."""
    name, *arguments = words
    known = {one for param in main.commands[name].params for one in param.opts}
    assert {one for one in arguments if one.startswith("--")} <= known


def test_compose_file_starts_kernels_as_they_can_be_started() -> None:
    (compose,) = blocks("yaml")
    (caddyfile,) = blocks("caddyfile")
    assert f"    {STORE_VARIABLE}: postgresql://" in compose
    commands = [json.loads(one) for one in re.findall(r"^    command: (.*)$", compose, re.M)]
    assert len(commands) == 2
    for command in commands:
        check_command(command)
        assert f" {command[command.index('--listen') + 1]} " in caddyfile
    for line in compose.splitlines():
        assert "\t" not in line and (len(line) - len(line.lstrip())) % 2 == 0


def test_units_are_sound_and_start_what_exists(tmp_path: Path) -> None:
    texts = blocks("ini")
    for name, text in zip(UNITS, texts, strict=True):
        (tmp_path / name).write_text(text.replace(PROGRAM, "/bin/true"))
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation says
        unit.read_string(text)
        found = re.search(rf"{PROGRAM} (.*?)'?$", unit.get("Service", "ExecStart", fallback=""))
        if found is not None:
            check_command(found[1].split())
            (settings,) = (one for one in blocks("sh") if STORE_VARIABLE in one)
            for variable in re.findall(r"\$\{(\w+)\}", found[1]):
                assert f"{variable}=" in settings
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    paths = [str(tmp_path / name) for name in UNITS]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
