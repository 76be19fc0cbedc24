"""MCP servers that die, flood, lie, change their tools or never answer: a stated outcome each."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from antiphon_kernel.mcp_servers import servers as servers_module
from antiphon_kernel.providers import PermissionPolicy
from antiphon_kernel.turns import runner
from antiphon_kernel.types.enums import BlockKind, CallPermission, ToolKind
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.mcp_servers.served_stage import SCRIPT, ServedStage, faulty
from tests.kernel.turns.stage import call
from tests.policies import policy_of
from tests.waiting import until

shared = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedStage]:
    folder = tmp_path_factory.mktemp("served")
    heard = {"HEARD": str(folder / "heard")}
    opened = await ServedStage.open(folder, faulty(env=heard, seconds=20.0))
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers_module, "LONGEST_DELAY", 0.0)


def allow(stage: ServedStage, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give calls of the server so many seconds."""
    server = stage.runner.servers["bad"]
    monkeypatch.setattr(server, "config", replace(server.config, seconds=seconds))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@shared
async def test_tool_of_a_server_is_called(stage: ServedStage) -> None:
    assert await stage.run("bad__echo", text="hello") == "hello"
    assert stage.last_call().tool_kind == ToolKind.MCP
    assert stage.last_call().status == "done"
    assert stage.told()[:2] == ["bad__ask", "bad__ask_and_forget"]
    assert await stage.run("bad__echo") == (
        "invalid_params: bad__echo does not take that: 'text' is a required property."
    )
    slow = "a" * 40 + "!"
    assert slow in await stage.run("bad__pattern", text=slow), "no expression of a server is run"


@shared
@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (
            "die",
            r"The MCP server bad has.*its process has ended; its last words: I cannot go on.",
        ),
        ("die_with_child", r"The MCP server bad has.*its process has ended; its last words: I "),
        (
            "long_line",
            r"The MCP server bad has.*sent a line of more than 16,777,216 byte",
        ),
        ("lie", r"The MCP server bad has.*Invalid structured content returned by tool"),
    ],
)
async def test_fault_is_a_result_and_the_next_call_works(
    stage: ServedStage, tool: str, said: str
) -> None:
    result = await stage.run(f"bad__{tool}")
    assert re.match(said, result), result
    assert stage.last_call().is_error
    if tool == "die":
        assert (stage.kernel.data / "mcp-bad.log").read_text() == "I cannot go on.\n"
    assert await stage.run("bad__echo", text="again") == "again"


@shared
async def test_flood_is_cut_and_garbage_left_out(stage: ServedStage) -> None:
    result = await stage.run("bad__flood")
    assert len(result) < 210_000
    assert "[800,000 characters left out]" in result
    assert stage.last_result().truncated


@shared
async def test_progress_stands_in_the_cell_until_the_result_comes(
    stage: ServedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(stage, 0.7, monkeypatch)  # less than it takes, more than between two steps
    await stage.begin("bad__steps")
    await until(lambda: stage.results()[-1] == "[2 of 3] step 2")
    await stage.runner.wait_idle()
    assert stage.results()[-1] == "All steps."


@shared
async def test_stop_key_cancels_the_call_at_the_server(stage: ServedStage) -> None:
    await stage.begin("bad__slow")
    await until(lambda: stage.last_call().tool_name == "bad__slow")
    heard = stage.kernel.project / "heard"
    await until(lambda: '"slow"' in heard.read_text())
    await stage.interrupt()
    await until(lambda: "notifications/cancelled" in heard.read_text())
    assert stage.last_call().stop_reason == "interrupted"
    assert not stage.unfinished()
    assert await stage.run("bad__echo", text="on") == "on"


@shared
async def test_call_without_an_answer_is_stopped(
    stage: ServedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(stage, 0.2, monkeypatch)
    said = "Stopped: it had not ended after 0.2 seconds."
    assert await stage.run("bad__slow") == said


@shared
async def test_changed_tool_is_not_called_before_it_is_listed_anew(stage: ServedStage) -> None:
    again = (call("bad__echo", "again", text="x"),)
    stage.reply_with("bad__rename", {}, again)
    await stage.play("Go on.")
    assert "bad__echo" in stage.told(), "the list is the same to the end of the turn"
    assert "has changed or removed this tool since it was listed" in stage.results()[-1]
    await stage.run("bad__pid")
    assert "bad__echo2" in stage.told() and "bad__echo" not in stage.told()
    assert (await stage.run("bad__echo", text="x")).startswith("unknown_tool: There is no tool")
    await stage.run("bad__die")
    assert await stage.run("bad__echo", text="x") == "x", "the next process has the old name"


# Questions


@shared
async def test_question_is_answered_by_an_owner(stage: ServedStage) -> None:
    await stage.begin("bad__ask")
    block = await stage.asked()
    asked = stage.last_call().metadata["question"]
    assert asked["message"] == "Who are you?"
    assert [one["name"] for one in asked["fields"]] == ["name", "count", "colour", "sure"]
    assert asked["fields"][2]["options"] == [["red", "red"], ["blue", "blue"]]
    editor = await stage.actor("bo")
    accept = {"block_id": block, "action": "accept"}
    for actor, content, code in (
        (editor, {"name": "bo"}, "permission_denied"),
        (stage.owner, {}, "invalid_params"),
        (stage.owner, {"name": "a"}, "invalid_params"),
        (stage.owner, {"name": "amy", "count": "x"}, "invalid_params"),
        (stage.owner, {"name": "amy", "more": 1}, "invalid_params"),
    ):
        with pytest.raises(AntiphonError) as error:
            await stage.kernel.call(actor, "elicitation.answer", {**accept, "content": content})
        assert error.value.code == code
    answer = {"name": "amy", "count": 2, "sure": True}
    await stage.call("elicitation.answer", **accept, content=answer)
    await stage.runner.wait_idle()
    assert json.loads(stage.results()[-1]) == {"action": "accept", "content": answer}
    said = stage.last_call().metadata["question"]
    assert (said["action"], said["by"]) == ("accept", "amy")
    assert "content" not in said


@shared
async def test_question_is_declined_after_any_time(
    stage: ServedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(stage, 0.2, monkeypatch)
    await stage.begin("bad__ask")
    await stage.asked()
    await asyncio.sleep(0.3)
    await stage.call("elicitation.answer", block_id=await stage.asked(), action="decline")
    await stage.runner.wait_idle()
    assert json.loads(stage.results()[-1]) == {"action": "decline"}


@shared
async def test_question_that_is_too_large_is_not_asked(stage: ServedStage) -> None:
    await stage.begin("bad__ask_much")
    await stage.runner.wait_idle()
    assert json.loads(stage.results()[-1]) == {"action": "cancel"}


@pytest.mark.parametrize("by", ["stop key", "server"])
@shared
async def test_question_is_withdrawn(stage: ServedStage, by: str) -> None:
    await stage.begin("bad__ask" if by == "stop key" else "bad__ask_and_forget")
    await stage.asked()
    if by == "stop key":
        await stage.interrupt()
    await stage.runner.wait_idle()
    assert stage.last_call().metadata["question"]["action"] == "cancel"
    with pytest.raises(AntiphonError, match="No question waits"):
        await stage.call("elicitation.answer", block_id=stage.last_call().id, action="decline")


# Lists


async def test_lists_of_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SERVER_SECONDS", 3.0)
    stage = await ServedStage.open(
        tmp_path,
        faulty("many", name="many"),
        faulty("bad"),
        faulty("alike", name="alike"),
        faulty("invalid", name="invalid"),
        faulty("usual", "30", name="late"),
    )
    try:
        await stage.play("Go on.")
        told = stage.told()
        assert len([one for one in told if one.startswith("many__")]) == 128
        assert [one for one in told if one.startswith("alike__")] == [
            "alike__a_b",
            "alike__a_b_2",
            "alike__a_b_3",
            "alike__" + "x" * 57,
            "alike__" + "x" * 55 + "_2",
        ]
        assert [one for one in told if one.startswith("bad__")] == ["bad__good"]
        last = str(stage.provider.prompts[-1].conversation.messages[-1])
        assert "[TOOLS MISSING] late: it is still starting" in last
        assert "[TOOLS MISSING] many: it has more than 128 tools" in last
        listed = {one["name"]: one for one in (await stage.call("mcp.list"))["servers"]}
        assert listed["late"]["state"] == "starting"
        assert "'huge' is left out: its definition has more than" in listed["bad"]["problem"]
        assert "Input should be 'object'" in listed["invalid"]["problem"]
        assert len(listed["many"]["tools"]) == 128
    finally:
        await stage.close()


# Approval


async def test_approval_is_of_the_definition_and_is_waited_for_over_a_restart(
    tmp_path: Path,
) -> None:
    stage = await ServedStage.open(tmp_path, faulty(), policy=PermissionPolicy())

    async def decide(decision: str) -> None:
        await until(lambda: bool(stage.runner.permissions.waiting))
        await stage.call("permission.decide", block_id=stage.last_call().id, decision=decision)
        await stage.runner.wait_idle()

    await stage.begin("bad__echo", text="a")
    await until(lambda: any(one.is_undecided for one in stage.of_kind(BlockKind.TOOL_CALL)))
    await stage.close()
    stage = await ServedStage.open(tmp_path, faulty(), policy=PermissionPolicy())
    try:
        await decide("always")
        assert stage.results()[-1] == "a"
        assert await stage.run("bad__echo", text="a") == "a", "the rule holds"
        assert stage.last_call().permission == CallPermission.ALWAYS
        (rule,) = (await stage.call("permission.list"))["rules"]
        assert rule["tool"] == "bad__echo"
        await stage.begin("bad__change")
        await decide("once")
        await stage.begin("bad__echo", text="a")
        await decide("no")
        assert stage.results()[-1] == "Not run: amy said no."
    finally:
        await stage.close()


@pytest.mark.parametrize(
    ("permits", "permit"),
    [
        ({}, "ask"),
        ({"bad__echo": "allow"}, "allow"),
        ({"bad__*": "allow"}, "allow"),
        ({"bad__*": "allow", "bad__echo": "deny"}, "deny"),
        ({"bad__*": "deny", "*": "allow"}, "deny"),
        ({"other__*": "allow"}, "ask"),
    ],
)
def test_policy_names_a_tool_or_its_server(permits: dict[str, str], permit: str) -> None:
    assert (policy_of(permits).permit("bad__echo") or "ask") == permit


KILLED: Final = """
import asyncio, sys
from pathlib import Path
from antiphon_kernel.mcp_servers import McpServerConfig, McpServers

async def main():
    made = McpServerConfig("bad", (sys.executable, sys.argv[2]))
    servers = McpServers([made], Path(sys.argv[1]), Path(sys.argv[1]))
    await servers.ready(None, 60)
    pid = next(one for one in servers["bad"].tools if one.tool == "pid")
    found = await servers["bad"].call(pid, {}, None, None)
    print(found.content[0].text, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_processes_end_with_a_kernel_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(SCRIPT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as kernel:
        assert kernel.stdout is not None
        pid = int(await asyncio.to_thread(kernel.stdout.readline))
        assert is_running(pid)
        kernel.kill()
    await until(lambda: not is_running(pid))


async def test_few_tools_are_those_that_are_named_run_for_owners_and_end_with_the_kernel(
    tmp_path: Path,
) -> None:
    stage = await ServedStage.open(tmp_path, faulty(), tools=("block_read", "bad__pid"))
    stage.reply_with("bad__pid", {})
    await stage.play("Go on.", await stage.actor("bo"))
    assert stage.told() == ["bad__pid"]
    assert stage.results()[-1].startswith("Not run: this turn answers a message of bo, an editor")
    pid = int(await stage.run("bad__pid"))
    assert is_running(pid)
    await stage.close()
    assert not is_running(pid)
