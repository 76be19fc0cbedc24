"""The demo in real terminals: a model streams, one person types inside it, another watches."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any, TypeVar

import pytest

from antiphon_kernel.client.discovery import RunningKernel, newest_kernel
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import Terminal, shows_words
from tests.recordings import Recorded, numbered_recording
from tests.waiting import wait_until

Value = TypeVar("Value")

TYPED = "zebracrossing"


def answer_of(machine: Machine, data: Path, *, status: str) -> dict[str, Any] | None:
    """The model's text block, if it is there and has this status."""
    listed = machine.call(data, "block.list", role="model", kind="text")["blocks"]
    for block in listed:
        if block["status"] == status:
            return machine.call(data, "block.read", block_id=block["block_id"])
    return None


def kernel_after(machine: Machine, ended: int) -> RunningKernel | None:
    """The kernel that took the place of the one with process id `ended`."""
    found = newest_kernel(machine.project)
    return found if found is not None and found.pid != ended else None


def walk_into_the_stream(terminal: Terminal) -> None:
    """From the composer into the block that the model is writing."""
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.press("enter")
    terminal.wait_for("EDIT")


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Longer than a test takes; a line in three seconds, so that what is typed stays to be seen."""
    return numbered_recording(tmp_path / "aria.jsonl", model="aria", words=1_000, pause_ms=400)


def in_tmux() -> tuple[str, ...]:
    """A program that runs antiphon in tmux, which ends with its terminal; without tmux, bare."""
    if (tmux := shutil.which("tmux")) is None:
        return (ANTIPHON,)
    name = f"antiphon-{os.getpid()}"
    ends = ("start-server", ";", "set", "-g", "destroy-unattached", "on", ";")
    return (tmux, "-L", name, "-f", os.devnull, *ends, "new-session", ANTIPHON)


def test_demo_in_two_terminals_shares_streaming_block_also_when_one_is_resized(
    machine: Machine, recorded: Recorded
) -> None:
    first = machine.terminal("demo", "--play", str(recorded.path))
    first.wait_for("WRITE", what="the first frame")
    first.wait_for(shows_words, what="the stream")

    second = machine.terminal("join", program=in_tmux())
    first.wait_for("guest", what="the guest's name")
    second.wait_for(shows_words, what="the stream in the second terminal")

    walk_into_the_stream(first)
    for end in range(1, len(TYPED) + 1):
        if end == len(TYPED) // 2:
            first.resize(100, 20)
        first.type(TYPED[end - 1])
        first.wait_for(TYPED[:end])
        second.wait_for(TYPED[:end], what="a keystroke in the second terminal")
    first.press("escape")
    first.wait_for("NAVIGATE")

    data = machine.kernel().data
    assert machine.call(data, "turn.interrupt")["stopped"] == ["aria"], "the model writes still"
    answer = wait_until(lambda: answer_of(machine, data, status="error"), "the end of the turn")
    assert answer["content"].count(TYPED) == 1
    streamed = answer["content"].replace(TYPED, "")
    assert recorded.text.startswith(streamed)

    last = re.findall(r"word\d{4}", streamed)[-1]
    first.press("ctrl+end")
    first.wait_for(last)
    second.press("ctrl+end")
    second.wait_for(last)
    second.press("ctrl+q")
    assert second.wait_for_end() == 0
    first.press("ctrl+q")
    assert first.wait_for_end() == 0
    assert str(data) in first.text.replace("\n", ""), "where the demo is kept"


def test_kernel_killed_in_mid_stream_comes_back_with_all_that_was_acknowledged(
    machine: Machine, recorded: Recorded
) -> None:
    terminal = machine.terminal("demo", "--play", str(recorded.path))
    terminal.wait_for(shows_words)
    walk_into_the_stream(terminal)
    terminal.type(TYPED)
    terminal.wait_for(TYPED)
    before = machine.kernel()
    typed_is_on_disk = wait_until(
        lambda: (answer_of(machine, before.data, status="running") or {}).get("content"),
        "the running block",
    )
    assert TYPED in typed_is_on_disk

    os.kill(before.pid, signal.SIGKILL)
    after = wait_until(lambda: kernel_after(machine, before.pid), "the kernel again")
    assert after.data == before.data
    answer = wait_until(lambda: answer_of(machine, after.data, status="error"), "an ended block")
    assert answer["stop_reason"] == "interrupted"
    assert answer["content"].count(TYPED) == 1
    streamed = answer["content"].replace(TYPED, "")
    assert recorded.text.startswith(streamed)
    assert len(streamed) >= len(typed_is_on_disk.replace(TYPED, ""))

    terminal.type("again")
    terminal.wait_for(TYPED + "again", what="typing goes on")

    def has_arrived() -> bool:
        read = machine.call(after.data, "block.read", block_id=answer["block_id"])
        return "again" in read["content"]

    wait_until(has_arrived, "what was typed after the reconnect in the kernel")


def test_kernel_that_cannot_start_ends_the_app_with_its_log(
    machine: Machine, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("no recording")
    terminal = machine.terminal("demo", "--play", str(broken), cols=200)
    assert terminal.wait_for_end() == 3
    assert "The kernel ended at once" in terminal.text
    assert "broken.jsonl" in terminal.text
