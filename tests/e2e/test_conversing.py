"""`antiphon tail`, `send`, `blame`, `history`, `layout` and `--linear`, against a real kernel."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message
from tests.fork_server import start_process
from tests.waiting import PATIENCE

DEADLINE = 120.0
Tailing = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def tailing(machine: Machine) -> Iterator[Tailing]:
    """Starts `antiphon tail`, which is ended after the test."""
    started: list[subprocess.Popen[str]] = []
    deadlines: list[threading.Timer] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = start_process(
            [ANTIPHON, "tail", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=machine.env,
            cwd=machine.project,
            text=True,
        )
        started.append(process)
        # Whoever waits for a line that does not come reads the end of the output then.
        deadlines.append(threading.Timer(DEADLINE, process.kill))
        deadlines[-1].start()
        return process

    yield start
    for deadline in deadlines:
        deadline.cancel()
    for process in started:
        process.kill()
        process.communicate()


def lines(tail: subprocess.Popen[str], count: int) -> list[str]:
    assert tail.stdout is not None
    return [tail.stdout.readline().rstrip("\n") for _ in range(count)]


def ends_quietly(tail: subprocess.Popen[str]) -> None:
    """Wait for its end; it says nothing on standard error."""
    assert tail.wait(PATIENCE) == 0
    assert tail.stderr is not None
    assert tail.stderr.read() == ""


def test_what_is_sent_edited_and_rendered_is_printed_by_tail(
    machine: Machine, tailing: Tailing
) -> None:
    me = str(machine.call(machine.data, "session.whoami")["username"])
    first = machine.succeed("send", "--json", stdin="Hello,\nworld 🌍\n\n")
    block = json.loads(first.stdout)["block_id"]
    stored = machine.call(machine.data, "block.read", block_id=block)
    assert (stored["content"], stored["status"]) == ("Hello,\nworld 🌍", "done")

    tail = tailing()
    assert lines(tail, 3) == [f"── {me} · default.{me}.1", "Hello,", "world 🌍"]
    sent = machine.run("send", "--as", "bo", stdin="Me too.")
    assert (sent.returncode, sent.stdout, sent.stderr) == (0, "", "")
    assert lines(tail, 3) == ["", "── bo · default.bo.1", "Me too."]
    edit = {"block_id": "default.bo.1", "offset": 0, "delete_count": 2, "insert": "You"}
    machine.call(machine.data, "block.splice", **edit)
    heading = f"── bo · default.bo.1 · changed by {me}"
    assert lines(tail, 4) == ["", heading, "- Me too.", "+ You too."]

    for number in range(5):
        machine.call(machine.data, "block.create", **message(f"message {number}"))
    events = tailing("-n", "2", "--json")
    assert [json.loads(line)["content"] for line in lines(events, 2)] == ["message 3", "message 4"]
    machine.run("send", stdin="message 5")
    event = json.loads(lines(events, 1)[0])
    assert (event["kind"], event["content"]) == ("created", "message 5")

    for command in ("tail", "send"):
        done = machine.run(command, "nowhere", "--json", stdin="Hello")
        assert done.returncode == 1
        assert "There is no context 'nowhere'" in done.stderr
        assert json.loads(done.stdout)["error"]["code"] == "context_not_found"


def test_tail_ends_quietly_when_it_is_interrupted_or_nobody_reads_it(
    machine: Machine, tailing: Tailing
) -> None:
    machine.run("send", stdin="Hello")
    chance = random.Random(4)
    tails = [tailing() for _ in range(4)]
    for tail in tails:
        lines(tail, 2)
    unread = tails.pop()
    assert unread.stdout is not None
    unread.stdout.close()
    ends_quietly(unread)
    # Right after it has printed, and as it lies down to wait.
    for tail in tails:
        time.sleep(chance.uniform(0, 0.001))
        tail.send_signal(signal.SIGINT)
    for tail in tails:
        assert tail.communicate(timeout=PATIENCE) == ("", "")
        assert tail.returncode == 0

    machine.run("send", stdin="Hello, world.\n" * 20_000)
    blocked = tailing("-n", "1")
    lines(blocked, 2)
    blocked.send_signal(signal.SIGINT)
    ends_quietly(blocked)


def test_tail_can_be_interrupted_at_any_moment_and_ends_with_the_kernel(
    machine: Machine, tailing: Tailing
) -> None:
    """While it starts, connects, lists, prints and waits: it ends and leaves no half line."""
    machine.run("send", stdin="Hello")
    began = time.monotonic()
    last = tailing()
    printed = "".join(line + "\n" for line in lines(last, 2))
    usual = time.monotonic() - began
    chance = random.Random(40)
    for _ in range(6 if os.environ.get("ANTIPHON_LONG") else 1):
        tails = [tailing() for _ in range(8)]
        began = time.monotonic()
        for number, tail in enumerate(tails):
            due = began + (number + chance.random()) * usual / 2
            time.sleep(max(0.0, due - time.monotonic()))
            tail.send_signal(signal.SIGINT)
        for tail in tails:
            said, told = tail.communicate(timeout=PATIENCE)
            assert said in ("", printed)
            if said:
                assert (told, tail.returncode) == ("", 0)
            assert "never awaited" not in told
            assert "Exception ignored" not in told
    os.kill(machine.kernel().pid, signal.SIGTERM)
    assert last.communicate(timeout=PATIENCE) == ("", "antiphon: the kernel has ended.\n")
    assert last.returncode == 0


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


def test_linear_mode_in_a_pipe_sends_runs_edits_and_prints_every_answer(machine: Machine) -> None:
    block = f"default.{machine.call(machine.data, 'session.whoami')['username']}.1"
    edits = f"/edit {block} 1 three\n/read {block}\n/undo {block}\n/read {block}\n"
    typed = f"hello\\\nworld\n{edits}/new other\nthere\n/nothing\n/contexts\n!echo $((6 * 7))\nlast"
    done = machine.succeed("--linear", stdin=typed)
    lines = done.stdout.splitlines()
    for line in ("hello", "world", "42", "there", "last", "Context other."):
        assert line in lines
    assert "There is no command /nothing: /help lists them." in lines
    assert "Contexts: default, other." in lines
    assert "\x1b" not in done.stdout
    assert lines.index("world") < lines.index("Context other.") < lines.index("there")
    taken_back = lines.index(f"Taken back in {block}.")
    assert lines.index("1\tthree") < taken_back < lines.index("1\tworld")

    machine.succeed("--linear", stdin="\n".join(f"message {number}" for number in range(15)))
    done = machine.succeed("--linear", stdin="another\n")
    assert "another" in done.stdout
    assert "message 14" in done.stdout and "message 1\n" not in done.stdout


def test_linear_mode_on_a_terminal_moves_no_cursor(machine: Machine) -> None:
    terminal = machine.terminal("--linear", env={"TERM": "dumb"})
    terminal.wait_for("/help lists more")
    terminal.type("hello there")
    terminal.press("enter")
    terminal.wait_for("── ")
    terminal.type("/quit")
    terminal.press("enter")
    assert terminal.wait_for_end() == 0
    assert b"\x1b" not in terminal.output
