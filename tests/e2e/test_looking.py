"""`antiphon blame`, `history` and `layout` against a real kernel."""

from __future__ import annotations

import json

from tests.e2e.machine import Machine


def test_blame_history_and_layout_show_who_wrote_and_what_is_read(machine: Machine) -> None:
    made = {"role": "user", "kind": "text", "status": "done", "content": "milk\nbread \x1b[31m\n"}
    block = str(machine.call(machine.data, "block.create", **made)["block_id"])
    splice = {"block_id": block, "offset": 5, "insert": "rye "}
    machine.succeed("call", "block.splice", json.dumps(splice), "--as", "bo")

    blame = machine.succeed("blame", block).stdout
    rows = [row.split() for row in blame.splitlines()]
    assert [(row[0], row[-1]) for row in rows[:2]] == [("0", "milk"), ("1", "rye")]
    assert rows[1][1:3] == ["bo", "v2"]
    assert rows[2][1] == "v1"
    runs = json.loads(machine.succeed("blame", block, "--json").stdout)["runs"]
    assert [run["end"] for run in runs] == [5, 9, 21]

    rows = [row.split() for row in machine.succeed("history", block).stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows] == [("v1", "create"), ("v2", "splice")]
    assert rows[1][-2] == "bo"
    stated = json.loads(machine.succeed("history", block, "--json").stdout)["versions"]
    assert [one["version"] for one in stated] == [1, 2]

    printed = machine.succeed("layout").stdout
    assert "[USER MESSAGE]\n[path: ar:turn_" in printed
    assert "──── cache point: tail ────" in printed and "\x1b" not in printed + blame
    found = json.loads(machine.succeed("layout", "default", "--json").stdout)
    assert found["items"][-1]["block_id"] == block

    refused = machine.run("layout", "--model", "nobody")
    assert refused.returncode == 1 and "nobody" in refused.stderr
    for command in ("blame", "history"):
        done = machine.run(command, "default.system.99", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"]["code"] == "block_not_found"
        assert done.stderr.startswith("antiphon: ")
