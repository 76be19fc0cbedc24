"""An agent over ACP as people see it: what it offers, asks, does and uses."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon.actions import Mode
from antiphon.screens.questions import READ_SECONDS
from antiphon_kernel.config import AgentConfig
from tests.app.opened import World, opened, world
from tests.clocks import ManualClock
from tests.kernel import agents
from tests.waiting import until

MODES: Final = {
    "currentModeId": "build",
    "availableModes": [{"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}],
}

OPTION: Final = {
    "id": "depth",
    "name": "Thinking",
    "type": "select",
    "currentValue": "low",
    "options": [{"value": "low", "name": "little"}, {"value": "high", "name": "much"}],
}

COMMANDS: Final = [
    {"name": "init", "description": "Describe the project."},
    {"name": "review", "description": "Review changes."},
]

EDIT: Final = {
    "toolCallId": "t1",
    "title": "Change a.txt",
    "kind": "edit",
    "status": "in_progress",
}

CHOICES: Final = [
    {"optionId": "o", "name": "Yes", "kind": "allow_once"},
    {"optionId": "a", "name": "Yes, all edits", "kind": "allow_always"},
    {"optionId": "r", "name": "No, do something else", "kind": "reject_once"},
]


def prompt(project: Path) -> list[dict[str, Any]]:
    """Steps of the one turn."""
    path = str(project / "a.txt")
    diff = {"type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    located = {"locations": [{"path": path, "line": 40}]}
    entry = {"priority": "high"}
    steps = [
        {"content": "Look", "status": "completed", **entry},
        {"content": "Change", "status": "pending", **entry},
    ]
    asked = {"toolCall": {"toolCallId": "t1"}, "options": CHOICES}
    read = {"toolCallId": "t2", "title": "Read a.txt", "kind": "read", "status": "in_progress"}
    use = {"used": 12_000, "size": 200_000, "cost": {"amount": 0.5, "currency": "USD"}}
    return [
        {"update": {"sessionUpdate": "available_commands_update", "availableCommands": COMMANDS}},
        {"update": {"sessionUpdate": "usage_update", **use}},
        {"update": {"sessionUpdate": "plan", "entries": steps}},
        {"call": {**EDIT, "content": [diff]}},
        {"request": {"method": "session/request_permission", "params": asked}},
        {"call_update": {"toolCallId": "t1", "status": "completed"}},
        {"until_file": "followed"},
        {"call": {**read, "rawInput": {"path": path}, **located}},
        {"until_file": "read"},
        {"say": "That was all."},
        {"until_file": "done"},
        {"call_update": {"toolCallId": "t2", "status": "completed"}},
    ]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 61)))
    session = {"modes": MODES, "configOptions": [OPTION]}
    script = {"session": session, "session/prompt": [prompt(project)]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    program = Path(*agents.__path__) / "scripted_agent.py"
    command = sys.executable, "-SE", str(program), str(tmp_path / "script.json")
    async with world(project, models=False, agents=[AgentConfig("bot", command)]) as one:
        yield one


async def test_agent_offers_asks_works_and_is_followed_into_a_file(
    here: World, tmp_path: Path, clock: ManualClock
) -> None:
    async with opened(here, clock=clock) as there:
        await there.sees("@ addresses bot.")
        await there.type("@bo")
        await there.sees("agent")
        await there.press("tab")
        await there.send(" Go on.")

        # What it does, by its own words; what it asks, with its own answers.
        await there.sees("☑ Look")
        assert there.shows("☐ Change")
        await there.sees("Yes, all edits".replace(" ", "\N{NO-BREAK SPACE}"))
        assert there.shows("▪ edit a.txt · −1 +1")
        await until(lambda: "bot asks" in there.lines[0], lambda: there.lines[0])
        await there.press("escape", mode=Mode.NAVIGATE)
        await until(lambda: there.screen.situation.asks, "the call is chosen")
        clock.ms += round(1_000 * READ_SECONDS)
        await there.press("O")
        await there.sees('"optionId": "a"')
        await until(lambda: "Build · 12k/200k · $0.50 · live" in there.lines[0], "its use")

        # Followed to where it reads.
        await there.press("f")
        await there.sees("FOLLOWING bot")
        (tmp_path / "followed").touch()
        await there.sees("line 40")
        assert there.screen.source.is_file
        (tmp_path / "read").touch()
        await there.sees("That was all.")
        assert there.shows("▪ read Read a.txt")
        assert there.shows("FOLLOWING bot")
        await there.press("j")
        assert there.screen.controllers.following.followed is None
        (tmp_path / "done").touch()

        # What it offers.
        await there.press("i", mode=Mode.WRITE)
        await there.type("@bot /")
        await there.sees("/review")
        assert there.shows("Review changes.")
        await there.type("rev")
        await there.press("tab")
        assert there.message == "@bot /review "
        await there.palette("bot: set mode to Plan")
        await until(lambda: "Plan · 12k/200k · $0.50 · live" in there.lines[0], "the mode")
        await there.palette("bot: set Thinking to much")
        sent = tmp_path / "received.jsonl"
        await until(lambda: '"configId":"depth","value":"high"' in sent.read_text(), "it is told")
