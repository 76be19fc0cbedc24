"""The commands and their documentation."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from antiphon.cli.commands import antiphon
from antiphon_kernel.daemon.cli import serve as kernel_serve

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


def commands() -> list[click.Command]:
    return [antiphon, *antiphon.commands.values(), kernel_serve]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_and_option_is_in_the_docs(command: click.Command) -> None:
    page = PAGE.read_text("utf-8")
    assert f"`antiphon {command.name}" in page or command is antiphon
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in ("help", "version"):
            assert any(f"{name}" in page for name in parameter.opts), parameter.opts


@pytest.mark.parametrize("name", ["demo", "join", "call"])
def test_commands_have_help(name: str) -> None:
    shown = CliRunner().invoke(antiphon, [name, "--help"])
    assert shown.exit_code == 0
    assert f"Usage: antiphon {name}" in shown.output


def test_options_before_the_command_are_refused_not_ignored() -> None:
    shown = CliRunner().invoke(antiphon, ["--as", "ada", "call", "session.whoami"])
    assert shown.exit_code == 2
    assert "after the command" in shown.output
