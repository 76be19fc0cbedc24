"""`antiphon call --jsonl` with subscriptions, as a script uses it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message
from tests.waiting import PATIENCE


def call(number: object, tool: str, **params: Any) -> str:
    return json.dumps({"id": number, "tool": tool, "params": params}) + "\n"


def test_jsonl_caller_receives_events_of_own_calls_before_it_ends(machine: Machine) -> None:
    block = machine.call(machine.data, "block.create", **message("x"))["block_id"]
    stream = call(1, "block.subscribe") + "".join(
        call(number, "block.splice", block_id=block, offset=0, insert=f"{number}")
        for number in range(2, 6)
    )
    done = machine.succeed("call", "--jsonl", stdin=stream)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in lines if "id" in one] == [1, 2, 3, 4, 5]
    assert lines[0]["id"] == 1
    events = [one["event"] for one in lines if "event" in one]
    assert [one["version"] for one in events] == [2, 3, 4, 5]
    assert {one["origin"] for one in events} == {"own"}
    assert {one["subscription"] for one in lines if "event" in one} == {
        lines[0]["result"]["subscription"]
    }


class Follower:
    """A script that follows blocks by `antiphon call --jsonl`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    def say(self, line: str) -> None:
        self._stdin.write(line)
        self._stdin.flush()

    def hear(self) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(self._stdout.readline())
        return line

    def end(self) -> list[dict[str, Any]]:
        """Say nothing more; what was still to be heard, once the command has ended well."""
        self._stdin.close()
        rest = [json.loads(line) for line in self._stdout]
        assert self._process.wait(PATIENCE) == 0
        return rest


@contextmanager
def follower(machine: Machine, *arguments: str) -> Iterator[Follower]:
    """Killed at the end if it is still there."""
    process = subprocess.Popen(
        [ANTIPHON, "call", "--jsonl", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=machine.env,
        cwd=machine.project,
        text=True,
    )
    try:
        yield Follower(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def test_jsonl_caller_receives_events_of_others_without_calling(machine: Machine) -> None:
    block = machine.call(machine.data, "block.create", **message("x"))["block_id"]
    with follower(machine, "--as", "bo") as bo:
        bo.say(call("sub", "block.subscribe", block_ids=[block]))
        subscription = bo.hear()["result"]["subscription"]
        for number in range(3):
            inserted = f"{number}😀"
            machine.call(machine.data, "block.splice", block_id=block, offset=0, insert=inserted)
            line = bo.hear()
            assert line["subscription"] == subscription
            assert line["event"]["origin"] == "other"
            assert line["event"]["splices"][0]["insert"] == inserted
        bo.say(call("end", "block.unsubscribe", subscription=subscription))
        assert bo.hear()["id"] == "end"
        machine.call(machine.data, "block.collapse", block_id=block)
        bo.say(call("last", "session.whoami"))
        assert [line["id"] for line in bo.end()] == ["last"]


def test_jsonl_subscriber_is_notified_when_kernel_ends(machine: Machine) -> None:
    machine.run("call", "session.whoami")
    with follower(machine) as one:
        one.say(call(1, "block.subscribe"))
        subscription = one.hear()["result"]["subscription"]
        subprocess.run(["kill", str(machine.kernel().pid)], check=True)
        line = one.hear()
        assert line["subscription"] == subscription
        assert line["error"]["code"] == "no_kernel"
        assert one.end() == []
