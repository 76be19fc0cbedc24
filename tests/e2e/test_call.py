"""`antiphon call` as a script uses it, and `antiphon serve` in the foreground of a terminal."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message
from tests.fork_server import start_process
from tests.waiting import PATIENCE


def call(number: object, tool: str, **params: Any) -> str:
    return json.dumps({"id": number, "tool": tool, "params": params}) + "\n"


def test_first_call_starts_the_projects_kernel_and_says_so(machine: Machine) -> None:
    inner = machine.project / "src" / "deep"
    inner.mkdir(parents=True)
    first = machine.succeed("call", "session.whoami", cwd=inner)
    assert json.loads(first.stdout)["role"] == "owner"
    assert f"using {machine.data}" in first.stderr
    assert f"started a kernel for {machine.project}" in first.stderr
    assert not (inner / ".antiphon").exists()

    second = machine.succeed("call", "session.whoami")
    assert second.stderr == ""
    assert json.loads(second.stdout)["kernel"] == json.loads(first.stdout)["kernel"]

    text = "naïve 👩‍👩‍👧 日本語\r\ne\u0301 \x1b[31mred\n"
    made = machine.succeed("call", "block.create", "-", stdin=json.dumps(message(text)))
    block = json.dumps({"block_id": json.loads(made.stdout)["block_id"]})
    read = machine.succeed("call", "block.read", block, "--json")
    assert json.loads(read.stdout)["content"] == text
    assert "\x1b" not in read.stdout

    failed = machine.run("call", "block.raed", "{}", "--json")
    assert failed.returncode == 1
    error = json.loads(failed.stdout)["error"]
    assert error["code"] == "unknown_tool" and "block.read" in error["message"]
    assert error["message"] in failed.stderr


@pytest.mark.parametrize(
    ("command", "env", "code", "words"),
    [
        ("join", {}, 3, "antiphon demo"),
        ("demo", {"TERM": "dumb"}, 2, "TERM"),
        ("demo", {"LC_ALL": "POSIX", "LANG": "C"}, 2, "UTF-8"),
    ],
)
def test_app_that_cannot_be_opened_says_why(
    machine: Machine, command: str, env: dict[str, str], code: int, words: str
) -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"} if "LANG" in env else {}
    terminal = machine.terminal(command, env={**env, **plain}, cols=200)
    assert terminal.wait_for_end() == code
    assert words in terminal.text


class JsonlCall:
    """A script that speaks to `antiphon call --jsonl`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._stdin, self._stdout = process, process.stdin, process.stdout

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
        assert self.process.wait(PATIENCE) == 0
        return rest


@contextmanager
def jsonl_call(machine: Machine, *arguments: str) -> Iterator[JsonlCall]:
    """Killed at the end if it is still there."""
    process = start_process(
        [ANTIPHON, "call", "--jsonl", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.env,
        cwd=machine.project,
        text=True,
    )
    with process:
        try:
            yield JsonlCall(process)
        finally:
            process.kill()


def test_jsonl_caller_answers_in_order_and_receives_events_until_the_kernel_ends(
    machine: Machine,
) -> None:
    block = machine.call(machine.data, "block.create", **message("x"))["block_id"]
    # Its own, all of them before it ends.
    stream = call(1, "block.subscribe") + "".join(
        call(number, "block.splice", block_id=block, offset=0, insert=f"{number}")
        for number in range(2, 6)
    )
    done = machine.succeed("call", "--jsonl", stdin=stream)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in lines if "id" in one] == [1, 2, 3, 4, 5]
    assert lines[0]["id"] == 1
    events = [one["event"] for one in lines if "event" in one]
    assert [(one["version"], one["origin"]) for one in events] == [(n, "own") for n in range(2, 6)]
    subscription = lines[0]["result"]["subscription"]
    assert {one["subscription"] for one in lines if "event" in one} == {subscription}

    with jsonl_call(machine, "--as", "bo") as bo, jsonl_call(machine) as other:
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

        other.say(call(1, "block.subscribe"))
        subscription = other.hear()["result"]["subscription"]
        machine.end_kernel()
        line = other.hear()
        assert line["subscription"] == subscription
        assert line["error"]["code"] == "no_kernel"
        assert other.end() == []


def test_serve_command_prints_address_holds_its_folder_and_ends_on_ctrl_c(machine: Machine) -> None:
    terminal = machine.terminal("serve")
    terminal.wait_for("Ctrl+C ends it")
    assert machine.kernel().data == machine.data
    assert machine.run("call", "session.whoami").stderr == "", "it is the project's kernel"
    second = machine.run("serve")
    assert second.returncode == 4
    assert f"process {machine.kernel().pid}" in second.stderr
    terminal.press("ctrl+c")
    assert terminal.wait_for_end() == 0

    terminal = machine.terminal("serve", "--json", "--port", "0", cols=600)
    address = json.loads(terminal.wait_for("}").strip())
    assert {"pid", "kernel", "sync", "http", "socket", "token"} <= set(address)
    assert address["pid"] == machine.kernel().pid
    assert "--idle" in machine.succeed("serve", "--help").stdout
