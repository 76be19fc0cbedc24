"""`antiphon export` of a replay, as somebody calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from antiphon.cli.commands import antiphon
from tests.e2e.machine import Machine


@pytest.fixture
def machine(own_home: Path, tmp_path: Path) -> Iterator[Machine]:
    one = Machine(own_home, tmp_path)
    yield one
    one.close()


def test_export_writes_the_same_cast_to_a_file_and_to_its_output(
    machine: Machine, tmp_path: Path
) -> None:
    new = {"role": "user", "kind": "text", "content": "the word is mellon", "status": "done"}
    machine.succeed("call", "block.create", json.dumps(new))
    asked = ["export", "--format", "cast", "--redact", "mel+on", "--size", "60x10"]
    machine.succeed(*asked, "--output", "run.cast")
    written = (tmp_path / "run.cast").read_text("utf-8")
    assert machine.succeed(*asked).stdout == written
    assert '"cols": 60, "rows": 10' in written
    assert "the word is ██████" in written
    refused = machine.run("export", "--output", "no/where")
    assert "antiphon: Could not open file 'no/where': No such file or" in refused.stderr
    assert refused.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "gif"], "gif is no text: name a file for it with --output"),
        (["--redact", "x"], "--redact goes with formats of a replay, not with jsonl"),
        (["--format", "cast", "--static"], "--static goes with --format html"),
        (["--format", "cast", "--size", "80"], "'80' is no size: columns and rows, such as 80x24"),
    ],
)
def test_export_refuses_what_does_not_go_together(arguments: list[str], said: str) -> None:
    refused = CliRunner().invoke(antiphon, ["export", *arguments])
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.replace("│", "").split())
