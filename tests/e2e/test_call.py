"""`antiphon call` as a script uses it, against a real kernel."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest

from tests.e2e.machine import ANTIPHON, Machine
from tests.waiting import PATIENCE


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_first_call_starts_a_kernel_and_says_so(machine: Machine) -> None:
    first = machine.run("call", "session.whoami")
    assert first.returncode == 0
    assert json.loads(first.stdout)["role"] == "owner"
    assert str(machine.project) in first.stderr
    assert first.stderr.count("\n") == 1

    second = machine.run("call", "session.whoami")
    assert (second.returncode, second.stderr) == (0, "")
    assert json.loads(second.stdout)["kernel"] == json.loads(first.stdout)["kernel"]
    assert (machine.project / ".antiphon" / ".gitignore").read_text() == "*\n"


def test_call_from_a_subfolder_reaches_the_projects_kernel(machine: Machine) -> None:
    inner = machine.project / "src" / "deep"
    inner.mkdir(parents=True)
    machine.run("call", "session.whoami", cwd=inner)
    assert machine.data.is_dir()
    assert not (inner / ".antiphon").exists()


def test_block_that_was_made_is_read_back_exactly(machine: Machine) -> None:
    text = "naïve 👩‍👩‍👧 日本語\r\ne\u0301 \x1b[31mred\n"
    made = machine.succeed(
        "call",
        "block.create",
        json.dumps({"role": "user", "kind": "text", "content": text}),
        "--json",
    )
    read = machine.run(
        "call",
        "block.read",
        "-",
        stdin=json.dumps({"block_id": json.loads(made.stdout)["block_id"]}),
    )
    assert json.loads(read.stdout)["content"] == text
    assert "\x1b" not in read.stdout


def test_failed_call_says_on_stderr_what_to_do(machine: Machine) -> None:
    for arguments, code, hint in (
        (("session.whoami", "{broken"), "invalid_json", "not JSON"),
        (("session.whoami", "[1]"), "invalid_params", "JSON object"),
        (("block.raed", "{}"), "unknown_tool", "block.read"),
        (("block.list", '{"context": "attic"}'), "context_not_found", "attic"),
    ):
        failed = machine.run("call", *arguments, "--json")
        assert failed.returncode == 1
        error = json.loads(failed.stdout)["error"]
        assert error["code"] == code
        assert hint in error["message"]
        assert error["message"] in failed.stderr


def test_jsonl_caller_answers_every_line_and_continues_after_errors(machine: Machine) -> None:
    stream = "\n".join(
        [
            '{"id": 1, "tool": "block.create", "params": {"role": "user", "kind": "text"}}',
            "{broken",
            '{"id": 3, "tool": "block.fly", "params": {}}',
            '{"id": 4, "tool": "block.create", "params": {"role": 7, "kind": "text"}}',
            '{"id": 5, "tool": "block.read", "params": {"block_id": "default.system.99"}}',
            '{"id": "six", "tool": "session.whoami"}',
        ]
    )
    done = machine.succeed("call", "--jsonl", stdin=stream)
    answers = lines(done.stdout)
    assert [answer["id"] for answer in answers] == [1, None, 3, 4, 5, "six"]
    codes = [answer.get("error", {}).get("code") for answer in answers]
    expected = ["invalid_json", "unknown_tool", "invalid_params", "block_not_found"]
    assert codes == [None, *expected, None]
    assert all(answer["error"]["message"] for answer in answers if "error" in answer)


def test_owner_may_act_as_somebody_else(machine: Machine) -> None:
    done = machine.run("call", "session.whoami", "--as", "ada")
    assert json.loads(done.stdout)["username"] == "ada"
    refused = machine.run("call", "session.whoami", "--as", "Ada Lovelace")
    assert refused.returncode == 1
    assert "Ada Lovelace" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [("call",), ("call", "session.whoami", "--jsonl"), ("fly",), ("--data", "x", "call", "a")],
)
def test_call_command_with_wrong_arguments_is_usage_error(
    machine: Machine, arguments: tuple[str, ...]
) -> None:
    done = machine.run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("antiphon: ")
    assert done.stderr.count("\n") == 1
    assert "--help` says more" in done.stderr
    assert not machine.data.exists()


def test_joining_where_no_kernel_runs_says_how_to_start_one(machine: Machine) -> None:
    terminal = machine.terminal("join")
    assert terminal.wait_for_end() == 3
    assert "antiphondemo" in "".join(terminal.screen()).replace(" ", "")


@pytest.mark.parametrize(
    ("env", "word"), [({"TERM": "dumb"}, "TERM"), ({"LC_ALL": "POSIX", "LANG": "C"}, "UTF-8")]
)
def test_unfit_terminal_gets_a_sentence(machine: Machine, env: dict[str, str], word: str) -> None:
    terminal = machine.terminal("demo", env={**env, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert terminal.wait_for_end() == 2
    assert word in terminal.text


def test_antiphon_command_without_terminal_does_not_open_app(machine: Machine) -> None:
    done = machine.run()
    assert done.returncode == 2
    assert "antiphon call" in done.stderr
    assert not machine.data.exists()


def test_jsonl_call_waiting_for_line_ends_on_interruption(machine: Machine) -> None:
    with subprocess.Popen(
        [ANTIPHON, "call", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.env,
        cwd=machine.project,
        text=True,
    ) as calling:
        assert calling.stdin is not None
        assert calling.stdout is not None
        calling.stdin.write('{"id": 1, "tool": "session.whoami"}\n')
        calling.stdin.flush()
        assert json.loads(calling.stdout.readline())["id"] == 1
        calling.send_signal(signal.SIGINT)
        assert calling.wait(PATIENCE) == 1
        assert calling.stderr is not None
        assert calling.stderr.read().endswith("Aborted!\n")
