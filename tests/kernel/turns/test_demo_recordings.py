"""The demo's recordings play in its project, and are worth watching."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import pytest

from antiphon_kernel.daemon.demo_project import make_demo_project
from antiphon_kernel.providers.events import TextDelta, ThinkingDelta, ToolCallEvent
from antiphon_kernel.providers.recording import RecordedStep, ScriptedProvider, load_recordings
from antiphon_kernel.shell import run_shell
from antiphon_kernel.turns.models import Models, demo_recordings, load_models
from antiphon_kernel.types.enums import BlockKind
from tests.kernel.turns.stage import OpenStage

PATHS = demo_recordings()
GIT = shutil.which("git")


def seconds(steps: tuple[RecordedStep, ...]) -> float:
    return sum(step.wait_ms for step in steps) / 1000


def test_demo_recordings_are_three_small_files_of_one_model() -> None:
    assert [path.name for path in PATHS] == ["demo-1.jsonl", "demo-2.jsonl", "demo-3.jsonl"]
    assert {load_recordings(path)[0].model for path in PATHS} == {"aria"}
    assert all(path.stat().st_size < 150_000 for path in PATHS)


def test_first_thinks_looks_around_twice_and_then_writes_for_more_than_a_minute() -> None:
    first, second, third = load_recordings(PATHS[0])[0].rounds
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
    for step in load_recordings(PATHS[0])[0].rounds[2]:
        passed += step.wait_ms / 1000
        if isinstance(step.event, TextDelta):
            written += step.event.text
        if "sung by two chirs" in written and written.endswith("\n"):
            break
    assert passed < 3
    assert written.count("\n") <= 4


@pytest.mark.parametrize("path", PATHS[1:], ids=lambda path: path.stem)
def test_follow_ups_take_about_half_a_minute(path: Path) -> None:
    assert 20 <= sum(map(seconds, load_recordings(path)[0].rounds)) <= 40


def test_second_leaves_time_to_open_the_file_and_to_see_each_edit() -> None:
    waits = {
        step.event.id: step.wait_ms / 1000
        for steps in load_recordings(PATHS[1])[0].rounds
        for step in steps
        if isinstance(step.event, ToolCallEvent) and step.event.name == "file_edit"
    }
    assert waits["fix"] >= 5 and waits["three"] >= 4 and waits["line"] >= 4


@pytest.mark.parametrize("has_git", [True, False])
async def test_first_looks_around_in_the_demos_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_git: bool
) -> None:
    if not has_git:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    project = make_demo_project(tmp_path)
    assert (project / ".git").is_dir() == (has_git and GIT is not None)
    shown: list[str] = []

    async def keep(text: str) -> None:
        shown.append(text)

    for steps in load_recordings(PATHS[0])[0].rounds[:2]:
        call = steps[-1].event
        assert isinstance(call, ToolCallEvent) and not isinstance(call.input, str)
        assert await run_shell(call.input["command"], project, keep) == 0
    lines = "".join(shown).splitlines()
    assert lines[:4] == [str(project), "README.md", "choirs.py", "test_choirs.py"]
    assert len(lines) == 5 and "fatal" not in lines[4]


def test_project_is_made_once_and_is_no_other_than_its_own_commit(tmp_path: Path) -> None:
    project = make_demo_project(tmp_path)
    (project / "choirs.py").write_text("mine")
    (project / "README.md").unlink()
    assert make_demo_project(tmp_path) == project
    assert (project / "choirs.py").read_text() == "mine"
    assert not (project / "README.md").exists()
    if GIT is not None:
        command = [GIT, "-C", str(project), "status", "--porcelain"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert shown == " D README.md\n M choirs.py\n"


FIXED = {
    "return line % 2": "return line % choirs",
    "def score(song, choirs=2)": "def score(song, choirs=3)",
    "longest time.\n": "longest time.\nAnd who sings the end of it? All of us do.\n",
}
"""Changes that aria makes."""


@pytest.mark.parametrize(
    ("typed", "failed"),
    [
        pytest.param([("SONG", "# Sing it slowly.\nSONG")], 0, id="another line"),
        pytest.param([("% 2", "% 3"), ("% 3", "% choirs")], 1, id="the same line, the same way"),
    ],
)
async def test_aria_changes_a_file_in_which_somebody_types(
    open_stage: OpenStage, tmp_path: Path, typed: list[tuple[str, str]], failed: int
) -> None:
    left = list(typed)

    async def sleep(seconds: float) -> None:
        if seconds > 4 and left:  # aria waits before she edits
            old, new = left.pop(0)
            read = await stage.call("file.read", path="choirs.py")
            at = read["content"].index(old)
            line = read["content"].count("\n", 0, at)
            text = read["content"].split("\n")[line].replace(old, new, 1)
            one = {"op": "replace", "start_line": line, "end_line": line + 1, "content": text}
            await stage.call("block.edit", block_id=read["block_id"], operations=[one])

    player = ScriptedProvider([load_recordings(PATHS[1])[0]], sleep=sleep)
    stage = await open_stage(Models({"aria": player}))
    file = stage.kernel.project / "choirs.py"
    shutil.copytree(make_demo_project(tmp_path), stage.kernel.project, dirs_exist_ok=True)
    expected = file.read_text()
    for old, new in [*typed, *FIXED.items()]:
        expected = expected.replace(old, new, 1)
    await stage.play("And now?")
    assert not left and not stage.unfinished()
    assert file.read_text() == expected
    assert (await stage.call("file.diff", path="choirs.py"))["diff"] == ""
    edits = [one for one in stage.of_kind(BlockKind.TOOL_CALL) if one.tool_name == "file_edit"]
    assert [one.status for one in edits] == ["error"] * failed + ["done"] * (3 - failed)
    before, after = (one for one in stage.results() if "test_two_choirs" in one)
    assert before.count("FAILED") == 1
    assert after.count("FAILED") == ("% choirs" not in expected)


async def test_whole_demo_plays_into_finished_blocks(open_stage: OpenStage, tmp_path: Path) -> None:
    models = load_models(PATHS, speed=math.inf)
    models.autostart = False
    stage = await open_stage(models)
    shutil.copytree(make_demo_project(tmp_path), stage.kernel.project, dirs_exist_ok=True)
    for message in ("What is this?", "And now?", "And then?"):
        await stage.play(message)
    assert not stage.unfinished()
    tools = [str(one.tool_name) for one in stage.of_kind(BlockKind.TOOL_CALL)]
    edits = ["file_read", "shell", "file_edit", "file_edit", "file_edit", "shell"]
    assert tools == ["shell", "shell", *edits, "shell"]
    failed = [one.exit_code for one in stage.headers() if one.status != "done"]
    assert failed == [1], "the project's test, before its file is changed"
