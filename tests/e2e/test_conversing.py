"""`antiphon tail` and `antiphon send`, as a script uses them."""

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
from tests.waiting import PATIENCE

DEADLINE = 120.0
Tailing = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def tailing(machine: Machine) -> Iterator[Tailing]:
    """Starts `antiphon tail`, which is ended after the test."""
    started: list[subprocess.Popen[str]] = []
    deadlines: list[threading.Timer] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
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


def who(machine: Machine) -> str:
    return str(machine.call(machine.data, "session.whoami")["username"])


def test_send_command_message_is_printed_by_tail(machine: Machine, tailing: Tailing) -> None:
    me = who(machine)
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


def test_message_is_printed_when_it_is_sent_however_old_it_is(
    machine: Machine, tailing: Tailing
) -> None:
    draft = {"role": "user", "kind": "text", "content": "Half a"}
    block = machine.call(machine.data, "block.create", **draft)["block_id"]
    machine.run("send", "--as", "bo", stdin="Later")
    tail = tailing("--blocks", "1")
    assert lines(tail, 2) == ["── bo · default.bo.1", "Later"]
    machine.call(machine.data, "block.splice", block_id=block, offset=6, insert=" thought")
    machine.call(machine.data, "block.status", block_id=block, status="done")
    assert lines(tail, 3)[2] == "Half a thought"


def test_tail_is_quiet_when_it_is_interrupted(machine: Machine, tailing: Tailing) -> None:
    """Right after it has printed, and as it lies down to wait."""
    machine.run("send", stdin="Hello")
    chance = random.Random(4)
    tails = [tailing() for _ in range(3)]
    for tail in tails:
        lines(tail, 2)
    for tail in tails:
        time.sleep(chance.uniform(0, 0.001))
        tail.send_signal(signal.SIGINT)
    for tail in tails:
        assert tail.communicate(timeout=PATIENCE) == ("", "")
        assert tail.returncode == 0


def test_tail_can_be_interrupted_at_any_moment(machine: Machine, tailing: Tailing) -> None:
    """While it starts, connects, lists, prints and waits: it ends and leaves no half line."""
    machine.run("send", stdin="Hello")
    began = time.monotonic()
    printed = "".join(line + "\n" for line in lines(tailing(), 2))
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


def test_tail_can_be_interrupted_while_nobody_reads(machine: Machine, tailing: Tailing) -> None:
    machine.run("send", stdin="Hello, world.\n" * 20_000)
    tail = tailing()
    lines(tail, 2)
    tail.send_signal(signal.SIGINT)
    assert tail.wait(PATIENCE) == 0
    assert tail.stderr is not None
    assert tail.stderr.read() == ""


def test_tail_ends_with_the_kernel(machine: Machine, tailing: Tailing) -> None:
    machine.run("send", stdin="Hello")
    tail = tailing("--blocks", "1")
    lines(tail, 2)
    os.kill(machine.kernel().pid, signal.SIGTERM)
    said, told = tail.communicate(timeout=PATIENCE)
    assert (said, told) == ("", "antiphon: the kernel has ended.\n")
    assert tail.returncode == 0


def test_tail_ends_with_whoever_reads_it(machine: Machine, tailing: Tailing) -> None:
    machine.run("send", stdin="Hello")
    tail = tailing()
    lines(tail, 2)
    assert tail.stdout is not None
    tail.stdout.close()
    assert tail.wait(PATIENCE) == 0
    assert tail.stderr is not None
    assert tail.stderr.read() == ""


def test_tail_prints_events_as_json_from_the_blocks_that_were_asked_for(
    machine: Machine, tailing: Tailing
) -> None:
    for number in range(5):
        machine.call(machine.data, "block.create", **message(f"message {number}"))
    tail = tailing("-n", "2", "--json")
    assert [json.loads(line)["content"] for line in lines(tail, 2)] == ["message 3", "message 4"]
    machine.run("send", stdin="message 5")
    event = json.loads(lines(tail, 1)[0])
    assert (event["kind"], event["content"]) == ("created", "message 5")


def test_block_with_a_schema_is_printed_as_it_is_rendered(
    machine: Machine, tailing: Tailing
) -> None:
    schema = {"type": "map", "fields": [{"name": "votes", "field_type": "counter"}]}
    made = {"role": "user", "kind": "text", "schema": schema}
    block = machine.call(machine.data, "block.create", **made)["block_id"]
    tail = tailing()
    assert lines(tail, 2)[1] == "votes: 0"
    machine.call(machine.data, "block.increment", block_id=block, field="votes", by=2)
    assert lines(tail, 4)[2:] == ["- votes: 0", "+ votes: 2"]


def test_context_that_is_not_there_is_a_failure(machine: Machine) -> None:
    for command in ("tail", "send"):
        done = machine.run(command, "nowhere", stdin="Hello")
        assert (done.returncode, done.stdout) == (1, "")
        assert "There is no context 'nowhere'" in done.stderr
        stated = json.loads(machine.run(command, "nowhere", "--json", stdin="Hello").stdout)
        assert stated["error"]["code"] == "context_not_found"


@pytest.mark.parametrize(("given", "hint"), [(b" \n", "empty"), (b"\xff", "not UTF-8")])
def test_send_command_without_message_fails_and_starts_no_kernel(
    machine: Machine, given: bytes, hint: str
) -> None:
    done = machine.run("send", stdin=given)
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr
    assert not machine.data.exists()
