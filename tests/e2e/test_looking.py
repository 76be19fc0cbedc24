"""`antiphon blame`, `history` and `layout` against a real kernel."""

from __future__ import annotations

import json

import pytest

from tests.e2e.machine import Machine


@pytest.fixture
def block(machine: Machine) -> str:
    """A block that two have written."""
    made = {"role": "user", "kind": "text", "status": "done", "content": "milk\nbread \x1b[31m\n"}
    done = machine.run("call", "block.create", json.dumps(made))
    block = str(json.loads(done.stdout)["block_id"])
    splice = {"block_id": block, "offset": 5, "insert": "rye "}
    machine.run("call", "block.splice", json.dumps(splice), "--as", "bo")
    return block


def test_blame_shows_whose_words_are_where(machine: Machine, block: str) -> None:
    done = machine.succeed("blame", block)
    rows = [row.split() for row in done.stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows[:2]] == [("0", "milk"), ("1", "rye")]
    assert rows[1][1:3] == ["bo", "v2"]
    assert rows[2][1] == "v1"
    assert "\x1b" not in done.stdout

    runs = json.loads(machine.run("blame", block, "--json").stdout)["runs"]
    assert [run["end"] for run in runs] == [5, 9, 21]


def test_history_shows_who_did_what(machine: Machine, block: str) -> None:
    done = machine.succeed("history", block)
    rows = [row.split() for row in done.stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows] == [("v1", "create"), ("v2", "splice")]
    assert rows[1][-2] == "bo"
    stated = json.loads(machine.run("history", block, "--json").stdout)["versions"]
    assert [one["version"] for one in stated] == [1, 2]


def test_block_that_is_not_there_is_a_failure(machine: Machine) -> None:
    for command in ("blame", "history"):
        done = machine.run(command, "default.system.99", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"]["code"] == "block_not_found"
        assert done.stderr.startswith("antiphon: ")
        assert machine.run(command).returncode == 2


def test_layout_prints_what_models_read_with_its_cache_points(machine: Machine, block: str) -> None:
    printed = machine.succeed("layout").stdout
    assert "[USER MESSAGE]\n[path: ar:turn_" in printed
    assert "──── cache point: tail ────" in printed and "\x1b" not in printed
    found = json.loads(machine.succeed("layout", "default", "--json").stdout)
    assert found["items"][-1]["block_id"] == block
    refused = machine.run("layout", "--model", "nobody")
    assert refused.returncode == 1 and "nobody" in refused.stderr
