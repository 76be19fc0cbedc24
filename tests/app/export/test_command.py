"""`antiphon export` of a replay, as somebody calls it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner

from antiphon.cli.commands import antiphon
from tests.e2e.machine import Machine


@pytest.fixture
def machine(own_home: Path, tmp_path: Path) -> Iterator[Machine]:
    one = Machine(own_home, tmp_path)
    yield one
    one.close()


def test_export_writes_a_cast_of_the_size_without_what_is_redacted(machine: Machine) -> None:
    new = {"role": "user", "kind": "text", "content": "the word is mellon", "status": "done"}
    machine.succeed("call", "block.create", json.dumps(new))
    asked = ["export", "--format", "cast", "--redact", "mel+on", "--size", "60x10"]
    written = machine.succeed(*asked).stdout
    assert '"cols": 60, "rows": 10' in written
    assert "the word is ██████" in written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--redact", "x"], "--redact goes with formats of a replay, not with jsonl"),
        (["--format", "cast", "--static"], "--static goes with --format html"),
        (["--format", "cast", "--size", "80"], "'80' is no size: columns and rows, such as 80x24"),
    ],
)
def test_export_refuses_what_does_not_go_together(arguments: list[str], said: str) -> None:
    refused = CliRunner().invoke(antiphon, ["export", *arguments])
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.replace("│", "").split())


def test_film_is_not_written_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(ClickException, match="gif is no text: write it to a file, with > FILE"):
        antiphon.main(["export", "--format", "gif"], standalone_mode=False)
