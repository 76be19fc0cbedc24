"""`antiphon call --jsonl` with subscriptions, as a script uses it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.e2e.machine import ANTIPHON, Machine


def call(number: object, tool: str, **params: Any) -> str:
    return json.dumps({"id": number, "tool": tool, "params": params}) + "\n"


def test_what_a_script_does_itself_comes_back_as_events_before_it_ends(machine: Machine) -> None:
    made = machine.run(
        "call", "block.create", '{"role": "user", "kind": "text", "content": "x"}', "--json"
    )
    block = json.loads(made.stdout)["block_id"]
    stream = call(1, "block.subscribe") + "".join(
        call(number, "block.splice", block_id=block, offset=0, insert=f"{number}")
        for number in range(2, 6)
    )
    done = machine.run("call", "--jsonl", stdin=stream)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in lines if "id" in one] == [1, 2, 3, 4, 5]
    assert lines[0]["id"] == 1
    events = [one["event"] for one in lines if "event" in one]
    assert [one["version"] for one in events] == [2, 3, 4, 5]
    assert {one["origin"] for one in events} == {"own"}
    assert {one["subscription"] for one in lines if "event" in one} == {
        lines[0]["result"]["subscription"]
    }


def test_what_others_do_is_pushed_while_nothing_is_asked(machine: Machine) -> None:
    made = machine.run(
        "call", "block.create", '{"role": "user", "kind": "text", "content": "x"}', "--json"
    )
    block = json.loads(made.stdout)["block_id"]
    following = subprocess.Popen(
        [ANTIPHON, "call", "--jsonl", "--as", "bo"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=machine.env,
        cwd=machine.project,
        text=True,
    )
    assert following.stdin is not None
    assert following.stdout is not None
    try:
        following.stdin.write(call("sub", "block.subscribe", block_ids=[block]))
        following.stdin.flush()
        subscription = json.loads(following.stdout.readline())["result"]["subscription"]
        for number in range(3):
            params = {"block_id": block, "offset": 0, "insert": f"{number}😀"}
            machine.run("call", "block.splice", json.dumps(params))
            line = json.loads(following.stdout.readline())
            assert line["subscription"] == subscription
            assert line["event"]["origin"] == "other"
            assert line["event"]["splices"][0]["insert"] == f"{number}😀"
        following.stdin.write(call("end", "block.unsubscribe", subscription=subscription))
        following.stdin.flush()
        assert json.loads(following.stdout.readline())["id"] == "end"
        machine.run("call", "block.collapse", json.dumps({"block_id": block}))
        following.stdin.write(call("last", "session.whoami"))
        following.stdin.close()
        rest = [json.loads(line) for line in following.stdout]
        assert [line["id"] for line in rest] == ["last"]
        assert following.wait(10) == 0
    finally:
        following.kill()
        following.stdout.close()
        following.wait()


def test_whoever_follows_is_told_when_the_kernel_ends(machine: Machine) -> None:
    machine.run("call", "session.whoami")
    following = subprocess.Popen(
        [ANTIPHON, "call", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=machine.env,
        cwd=machine.project,
        text=True,
    )
    assert following.stdin is not None
    assert following.stdout is not None
    try:
        following.stdin.write(call(1, "block.subscribe"))
        following.stdin.flush()
        subscription = json.loads(following.stdout.readline())["result"]["subscription"]
        subprocess.run(["kill", str(machine.kernel().pid)], check=True)
        line = json.loads(following.stdout.readline())
        assert line["subscription"] == subscription
        assert line["error"]["code"] == "no_kernel"
        following.stdin.close()
        assert following.wait(10) == 0
    finally:
        following.kill()
        following.stdout.close()
        following.wait()
