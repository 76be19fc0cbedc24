"""The demo's recordings play in any folder and are worth watching."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import pytest

from antiphon_kernel.providers.events import TextDelta, ThinkingDelta, ToolCallEvent
from antiphon_kernel.providers.recording import RecordedStep, load_recording
from antiphon_kernel.shell import run_shell
from antiphon_kernel.turns.models import demo_recordings, load_models
from tests.kernel.turns.stage import OpenStage

PATHS = demo_recordings()


def seconds(steps: tuple[RecordedStep, ...]) -> float:
    return sum(step.wait_ms for step in steps) / 1000


def test_demo_recordings_are_three_small_files_of_one_model() -> None:
    assert [path.name for path in PATHS] == ["demo-1.jsonl", "demo-2.jsonl", "demo-3.jsonl"]
    assert {load_recording(path).model for path in PATHS} == {"aria"}
    assert all(path.stat().st_size < 150_000 for path in PATHS)


def test_first_thinks_looks_around_twice_and_then_writes_for_more_than_a_minute() -> None:
    first, second, third = load_recording(PATHS[0]).rounds
    thinking = "".join(s.event.text for s in first if isinstance(s.event, ThinkingDelta))
    assert thinking.count("\n") == 4
    assert isinstance(first[-1].event, ToolCallEvent)
    assert isinstance(second[-1].event, ToolCallEvent)
    assert seconds(first + second) < 5
    assert 75 <= seconds(third) <= 90
    text = "".join(s.event.text for s in third if isinstance(s.event, TextDelta))
    for sign in ("# ", "\n## ", "\n- ", "\n1. ", "```python\n", "**", "|---|"):
        assert sign in text


def test_line_to_mend_is_finished_within_three_seconds() -> None:
    written, passed = "", 0.0
    for step in load_recording(PATHS[0]).rounds[2]:
        passed += step.wait_ms / 1000
        if isinstance(step.event, TextDelta):
            written += step.event.text
        if "sung by two chirs" in written and written.endswith("\n"):
            break
    assert passed < 3
    assert written.count("\n") <= 4


@pytest.mark.parametrize("path", PATHS[1:], ids=lambda path: path.stem)
def test_follow_ups_take_about_half_a_minute(path: Path) -> None:
    assert 20 <= sum(map(seconds, load_recording(path).rounds)) <= 40


@pytest.mark.parametrize("folder", ["empty", "files", "git", "unborn"])
async def test_commands_work_in_any_folder(tmp_path: Path, folder: str) -> None:
    here = tmp_path / folder
    here.mkdir()
    if folder == "files":
        (here / "a file").write_text("")
    if folder in ("git", "unborn"):
        if shutil.which("git") is None:
            pytest.skip("no git here")
        subprocess.run(["git", "init", "-q", here], check=True)
    if folder == "git":
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        commit = ("commit", "-q", "--allow-empty", "-m", "First verse")
        subprocess.run(["git", "-C", here, *name, *commit], check=True)
    for steps in load_recording(PATHS[0]).rounds[:2]:
        call = steps[-1].event
        assert isinstance(call, ToolCallEvent) and not isinstance(call.input, str)
        pieces: list[str] = []

        async def keep(text: str, pieces: list[str] = pieces) -> None:
            pieces.append(text)

        exit_code = await run_shell(call.input["command"], here, keep)
        assert exit_code == 0
        assert "".join(pieces).strip()
        assert "fatal" not in "".join(pieces)


async def test_whole_demo_plays_into_finished_blocks(open_stage: OpenStage) -> None:
    models = load_models(PATHS, speed=math.inf)
    models.autostart = False
    stage = await open_stage(models)
    await stage.submit("What is this?")
    await stage.play("And now?")
    assert not stage.unfinished()
    kinds = [kind for kind, _, _ in stage.shown()]
    first = ["thinking", "tool_call", "tool_result", "text", "tool_call", "tool_result", "text"]
    assert [kind for kind in kinds if kind != "text"] == [
        kind for kind in [*first, "thinking"] if kind != "text"
    ]
    assert {status for _, status, _ in stage.shown()} == {"done"}
