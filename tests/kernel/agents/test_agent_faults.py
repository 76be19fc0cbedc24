"""Agents that fail, in every way: each has a stated outcome, and the next message is answered.

`open_agent` sees that nothing of the agent runs when the kernel is closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.turns.turn import TurnSettings
from tests.kernel.agents.agent_stage import AgentStage, OpenAgent, open_agent
from tests.processes import has_ended
from tests.waiting import until


@pytest.fixture
async def stage_of(tmp_path: Path) -> AsyncIterator[OpenAgent]:
    async with AsyncExitStack() as stack:
        yield partial(open_agent, tmp_path, stack, is_faulty=True)


OK = {"prompts": [[{"say": "All is well."}]]}
WELL = [("text", "done", "All is well.")]


def notice(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n"


def chunk(update: Any) -> str:
    return notice("session/update", sessionId="SESSION", update=update)


NONSENSE = (
    '{"jsonrpc": "2.0", "method": "session/upd\n',
    "Loading plugins...\n\n",
    "[1, 2]\n7\nnull\n",
    '{"id": 99, "result": {}}\n{"id": 98, "error": "No."}\n{"id": [1]}\n',
    "[" * 100_000 + "\n",
    "\udcff\n".encode(errors="replace").decode(),
    notice("session/news", sessionId="SESSION"),
    '{"id": "q", "method": "session/read_mind", "params": {}}\n',
    '{"id": 5, "method": "fs/read_text_file", "params": 7}\n',
    chunk({"sessionUpdate": "mood", "mood": "good"}),
    chunk({"sessionUpdate": "agent_message_chunk", "content": {"type": "smell"}}),
    chunk({"sessionUpdate": "tool_call"}),
    chunk(7),
    chunk({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "you"}}),
    notice(
        "session/update",
        sessionId="other",
        update={"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}},
    ),
)


async def test_what_is_no_message_is_skipped(stage_of: OpenAgent) -> None:
    raw = [{"raw": one} for one in NONSENSE]
    torn = chunk({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "!"}})
    steps = [*raw, {"say": "Still \ud83d"}, *raw, {"say": "here"}]
    steps += [{"raw": torn[:40]}, {"until_file": "on"}, {"raw": torn[40:]}]
    stage = await stage_of(initialize=raw, new=raw, prompts=[steps])
    await stage.submit("@bot Go.")
    await until(lambda: stage.shown()[1:] == [("text", "running", "Still \ufffdhere")])
    await stage.let("on")
    await stage.runner.wait_idle()
    assert stage.shown()[1:] == [("text", "done", "Still \ufffdhere!")]
    assert {one.get("code") for one in stage.answers() if one} == {-32601, -32602}


LAST = "\n    no key\n    set it\n"
INSTALL = "See that its command is installed and runs ("

FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "ends in initialize": (
        {"initialize": [{"complain": "no key\nset it\n"}, {"exit": 3}]},
        f"bot has ended with exit code 3. Its last lines:{LAST}{INSTALL}",
    ),
    "ends in session/new": (
        {"new": [{"exit": 0}]},
        "bot has ended with exit code 0, without a word",
    ),
    "ends in a prompt": (
        {"prompts": [[{"say": "I "}, {"complain": "no key\nset it\n"}, {"exit": 1}]]},
        f"bot has ended with exit code 1. Its last lines:{LAST}The next message goes on",
    ),
    "ends and leaves a process that holds the pipes": (
        {"prompts": [[{"start_child": 1}, {"exit": 1}]]},
        "bot has ended with exit code 1, without a word on stderr.",
    ),
    "ends within a line": (
        {"prompts": [[{"raw": '{"jsonrpc": "2.0", "me'}, {"exit": 2}]]},
        "bot has ended with exit code 2,",
    ),
    "silent in initialize": (
        {"initialize": [{"be_silent": 1}]},
        f"bot has said nothing for 1.5 s.\n{INSTALL}",
    ),
    "silent in session/new": ({"new": [{"be_silent": 1}]}, "bot has said nothing for 1.5 s.\nSee"),
    "a line without an end": (
        {"prompts": [[{"line_of": 100_000_000}]]},
        "bot has sent a line of more than 16,777,216 bytes.\nThe next",
    ),
    "another protocol": (
        {"initialize": [{"result": {"protocolVersion": 9}}]},
        "bot speaks version 9 of the protocol, and antiphon version 1.",
    ),
    "no answer at all": (
        {"initialize": [{"wrong": {"version": "one"}}]},
        "bot has answered what the protocol does not have: InitializeResponse.",
    ),
    "an answer of another kind": (
        {"prompts": [[{"say": "I"}, {"wrong": {"stopReason": "tired"}}]]},
        "bot has answered what the protocol does not have: PromptResponse.",
    ),
    "refuses a session": (
        {
            "initialize": [
                {
                    "result": {
                        "protocolVersion": 1,
                        "authMethods": [{"id": "a", "name": "bot login"}],
                    }
                }
            ],
            "new": [{"refuse": "Authentication required"}],
        },
        "bot refuses: Authentication required. It may have to be logged in: bot login.",
    ),
}


@pytest.mark.parametrize("is_silent", [False, True])
async def test_fault_is_said_and_the_next_message_is_answered(
    is_silent: bool, stage_of: OpenAgent
) -> None:
    faults = [name for name in FAULTS if ("silent" in name) is is_silent]
    stage = await stage_of(TurnSettings(agent_silence_seconds=1.5) if is_silent else None)
    for fault in faults:
        steps, said = FAULTS[fault]
        before = stage.pids()
        stage.script(**steps)
        *_, (kind, status, text) = await stage.ask()
        assert (kind, status) == ("error", "error") and text.startswith(said), fault
        assert text.endswith(f"is in {stage.kernel.data}/agent-bot.log.") or "refuses" in fault
        assert not stage.unfinished(), fault
        assert stage.headers()[-1].metadata["can_retry"], fault
        assert len(stage.pids()) > len(before), fault
        assert all(map(has_ended, [*before, *_child(stage)])), fault
    stage.script(**OK)
    assert await stage.ask() == WELL


def _child(stage: AgentStage) -> list[int]:
    written = stage.folder / "child"
    return [int(written.read_text())] if written.exists() else []


async def test_command_that_is_not_there_is_named(stage_of: OpenAgent) -> None:
    stage = await stage_of(command=["no-such-agent", "acp"])
    ((kind, _, text),) = await stage.ask()
    assert kind == "error" and "no-such-agent: not found" in text and "exit code 127" in text


async def test_log_is_kept_within_bounds(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[[{"complain": "x" * 700_000}, {"say": "All is well."}]])
    for _ in range(3):
        assert await stage.ask() == WELL
    assert (stage.kernel.data / "agent-bot.log").stat().st_size == 1_000_000


async def stopped(stage: AgentStage, shown: Any) -> None:
    """Ask, stop the agent once it has said something, and wait until it has stopped."""
    await stage.submit("@bot Go.")
    await until(lambda: stage.shown()[1:] == shown)
    assert await stage.interrupt() == ["bot"]
    assert not stage.unfinished()


async def test_agent_that_is_stopped_goes_on_with_the_next_message(stage_of: OpenAgent) -> None:
    said = {"say": "W"}, {"until_cancelled": 1}, {"say": "late"}, {"stop": "cancelled"}
    stage = await stage_of(prompts=[said, *OK["prompts"]])
    await stopped(stage, [("text", "running", "W")])
    assert stage.shown()[1:] == [("text", "error", "W")]
    (_, answer) = stage.headers()
    assert (answer.stop_reason, answer.stopped_by) == ("interrupted", "amy")
    assert await stage.ask() == WELL
    assert len(stage.pids()) == 1
    stage.kernel.closed.notify(stage.context)  # as if nobody had used it for long
    await until(lambda: all(map(has_ended, stage.pids())), "the end of an agent nobody needs")


SILENT: tuple[list[dict[str, Any]], ...] = (
    [{"say": "W"}, {"be_silent": 1}],
    [{"say": "W"}, *({"raw": "so\n"}, {"until_file": "never"})],
)


@pytest.mark.parametrize("steps", SILENT)
async def test_agent_that_does_not_stop_is_killed(steps: Any, stage_of: OpenAgent) -> None:
    stage = await stage_of(TurnSettings(agent_stop_seconds=0.2), prompts=[steps])
    await stopped(stage, [("text", "running", "W")])
    assert all(map(has_ended, stage.pids()))
    stage.script(**OK)
    assert await stage.ask() == WELL


PERMISSION = {
    "method": "session/request_permission",
    "params": {
        "toolCall": {"toolCallId": "c", "title": "Fetch", "kind": "fetch"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
    },
}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


async def test_questions_are_cancelled_when_the_turn_is_stopped(stage_of: OpenAgent) -> None:
    steps = [{"ask": PERMISSION}, {"until_cancelled": 1}, {"until_answered": 1}]
    # Asked once more, after it was told to stop.
    steps += [{"ask": PERMISSION}, {"until_answered": 1}, {"stop": "cancelled"}]
    stage = await stage_of(prompts=[steps, *OK["prompts"]])
    await stage.submit("@bot Go.")
    await until(lambda: bool(stage.runner.permissions.waiting))
    assert await stage.interrupt() == ["bot"]
    assert stage.answers() == [CANCELLED, CANCELLED]
    (call,) = stage.headers()[1:]
    assert (call.permission, call.stopped_by) == ("withdrawn", "amy")
    assert await stage.ask() == WELL


async def test_question_is_answered_in_its_turn(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[[{"request": PERMISSION}]])
    await stage.submit("@bot Go.")
    await until(lambda: bool(stage.runner.permissions.waiting))
    call = next(iter(stage.runner.permissions.waiting))
    await stage.call("permission.decide", block_id=call, decision="once")
    await stage.runner.wait_idle()
    assert stage.answers() == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]


async def test_requests_outside_of_a_turn_are_refused(stage_of: OpenAgent) -> None:
    read = {"method": "fs/read_text_file", "params": {"path": "/etc/passwd"}}
    stage = await stage_of(prompts=[[{"say": "All is well."}]], new=[{"ask": read}])
    await stage.ask()
    await until(lambda: bool(stage.answers()))
    assert stage.answers()[0]["message"] == "No turn runs in this session, or it is being stopped."


async def test_what_comes_behind_the_end_of_a_turn_is_left_nowhere(stage_of: OpenAgent) -> None:
    late = [{"say": "late"}, {"call": {"toolCallId": "l", "title": "Late"}}, {"ask": PERMISSION}]
    stage = await stage_of(prompts=[[{"say": "W"}, {"after": late}], *OK["prompts"]])
    said = await stage.ask()
    # What is read together with the end belongs to the turn.
    assert said[0] in [("text", "done", "W"), ("text", "done", "Wlate")]
    await until(lambda: bool(stage.answers()))
    assert await stage.ask() == WELL
    assert not stage.unfinished()
    assert stage.answers() == [CANCELLED]


async def test_block_that_somebody_ends_ends_the_turn(stage_of: OpenAgent) -> None:
    steps = [{"say": "W"}, {"until_file": "on"}, {"say": "late"}, {"until_cancelled": 1}]
    stage = await stage_of(prompts=[[*steps, {"stop": "cancelled"}], *OK["prompts"]])
    await stage.submit("@bot Go.")
    await until(lambda: stage.shown()[1:] == [("text", "running", "W")])
    await stage.call("block.status", block_id=stage.headers()[-1].id, status="done")
    await stage.let("on")
    await stage.runner.wait_idle()
    assert stage.shown()[-1][2].startswith("The turn failed: Block")
    assert await stage.ask() == WELL
    assert len(stage.pids()) == 1


CAN = (
    ({"sessionCapabilities": {"resume": {}}, "loadSession": True}, "session/resume"),
    ({"loadSession": True}, "session/load"),
    ({}, "session/new"),
)


@pytest.mark.parametrize(
    ("killed", "capabilities", "method"), [*(("agent", *one) for one in CAN), ("kernel", *CAN[1])]
)
async def test_session_goes_on_after_a_crash(
    killed: str, capabilities: Any, method: str, tmp_path: Path
) -> None:
    replay = [{"say": "replayed"}, {"call": {"toolCallId": "r", "title": "Replayed"}}]
    steps: dict[str, Any] = {"capabilities": capabilities, "load": replay}
    steps["prompts"] = [[{"say": "W"}, {"until_file": "never"}], [{"say": "Yes."}]]
    async with AsyncExitStack() as stack:
        stage = await open_agent(tmp_path, stack, **steps)
        await stage.submit("@bot Go.")
        await until(lambda: stage.shown()[1:] == [("text", "running", "W")])
        if killed == "agent":
            os.kill(stage.pids()[0], signal.SIGKILL)
            await stage.runner.wait_idle()
            _, answer, (kind, _, text) = stage.shown()
            assert answer == ("text", "error", "W")
            assert kind == "error" and text.startswith("bot was killed (signal 9), without a word")
        else:
            await stack.aclose()
            stage = await open_agent(tmp_path, stack)
        stage.script(**{**steps, "prompts": [[{"say": "Yes."}]]})
        assert await stage.ask("Still there?") == [("text", "done", "Yes.")]
        assert stage.received(method)[-1].get("sessionId", "s1") == "s1"
        told = stage.prompts()[-1]
        if method == "session/new":
            assert told.startswith("This conversation is a document") and "bot: W" in told
            assert "amy: @bot Go." in told
        else:
            assert told == "Still there?"


async def test_question_that_the_kernel_left_open_is_withdrawn(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        stage = await open_agent(tmp_path, stack, prompts=[[{"request": PERMISSION}]])
        await stage.submit("@bot Go.")
        await until(lambda: bool(stage.runner.permissions.waiting))
        await stack.aclose()
        stage = await open_agent(tmp_path, stack)
        await until(lambda: not stage.unfinished())
        assert (await stage.call("permission.list"))["undecided"] == []
        stage.script(**OK)
        assert await stage.ask() == WELL


async def test_draft_that_was_sent_meanwhile_is_told_after_a_restart(tmp_path: Path) -> None:
    steps: dict[str, Any] = {"capabilities": {"loadSession": True}}
    steps["prompts"] = [[{"say": "Yes."}]]
    async with AsyncExitStack() as stack:
        stage = await open_agent(tmp_path, stack, **steps)
        draft = await stage.draft("To nobody.")
        await stage.ask("One.")
        await stage.call("block.status", block_id=draft, status="done")
        await stack.aclose()
        stage = await open_agent(tmp_path, stack)
        await stage.ask("Two.")
        assert stage.prompts()[-1].split("\n\n") == [
            "Since you have last looked:",
            "amy: To nobody.",
            "The message to you:",
            "Two.",
        ]


async def test_session_that_the_agent_has_lost_begins_anew(stage_of: OpenAgent) -> None:
    capabilities = {"sessionCapabilities": {"resume": {}}}
    stage = await stage_of(capabilities=capabilities, prompts=[[{"say": "Yes."}, {"exit": 0}]])
    await stage.ask("One.")
    (stage.folder / "sessions").unlink()
    stage.script(capabilities=capabilities, **OK)
    assert await stage.ask("Two.") == WELL
    assert "amy: @bot One." in stage.prompts()[-1]


KILLED = """
import asyncio, os, signal, sys
from contextlib import AsyncExitStack
from pathlib import Path
from tests.kernel.agents.agent_stage import open_agent
from tests.waiting import until

async def main(folder):
    async with AsyncExitStack() as stack:
        steps = [{"start_child": 1}, {"say": "W"}, {"be_silent": 1}]
        stage = await open_agent(folder, stack, prompts=[steps])
        await stage.submit("@bot Go.")
        await until(lambda: stage.shown()[1:] == [("text", "running", "W")])
        await stage.context.wait_persisted()
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_nothing_runs_after_the_kernel_was_killed(tmp_path: Path) -> None:
    program = (sys.executable, "-c", KILLED, str(tmp_path))
    process = await asyncio.create_subprocess_exec(*program, cwd=Path(__file__).parents[3])
    assert await process.wait() == -signal.SIGKILL
    async with AsyncExitStack() as stack:
        stage = await open_agent(tmp_path, stack)
        ended = [*stage.pids(), *_child(stage)]
        assert len(ended) == 2
        await until(lambda: all(map(has_ended, ended)))
        assert stage.shown()[1:] == [("text", "error", "W")]
        stage.script(**OK)
        assert await stage.ask() == WELL
