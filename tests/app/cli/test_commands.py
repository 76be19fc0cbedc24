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


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (("--as", "ada", "call", "session.whoami"), b"", "after the command"),
        (("--data", "x", "call", "session.whoami"), b"", "after the command"),
        (("call",), b"", "or --jsonl. `antiphon call --help` says more."),
        (("call", "session.whoami", "--jsonl"), b"", "or --jsonl"),
        (("fly",), b"", "no such command 'fly'"),
        ((), b"", "without one use `antiphon --linear` or `antiphon call`"),
        (("send",), b" \n", "standard input is empty"),
        (("send",), b"\xff", "standard input is not UTF-8"),
        (("run", " "), b"", "the prompt is empty"),
        (("run",), b"", "standard input is empty"),
        (("run", "x", "--max-rounds", "0"), b"", "0 is not in the range"),
        (("run", "x", "--output", "xml"), b"", "'xml' is not one of"),
        (("export", "--shape", "openai"), b"", "--shape goes with --format messages"),
        (("invite",), b"", "missing option '--role'"),
        (("invite", "--role", "owner"), b"", "'viewer'"),
        (("invite", "--role", "viewer", "--expires", "soon"), b"", "7d"),
        (("invite", "--role", "viewer", "--uses", "0"), b"", "1"),
        *(
            ((*command, "--data", ""), b"x", "it is empty: name a folder")
            for command in (
                *(("call", "session.whoami"), ("send",), ("run", "x"), ("models",), ("tail",)),
                *(("export",), ("doctor",), ("invite", "--role", "viewer"), ("backup", "f")),
                *(("log",), ("serve",), ("demo",), ("join",)),
            )
        ),
    ],
)
def test_wrong_use_of_a_command_is_one_line_and_starts_no_kernel(
    arguments: tuple[str, ...],
    given: bytes,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(antiphon, arguments, input=given, prog_name="antiphon")
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("antiphon: ") and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
