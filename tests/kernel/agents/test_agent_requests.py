"""Requests of an agent over its connection: files, commands, permission."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from antiphon_kernel.types.enums import BlockKind
from tests.kernel.agents.agent_stage import AgentStage, open_agent
from tests.waiting import until


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"request": {"method": method, "params": params}}


async def decide(stage: AgentStage, decision: str) -> str:
    """Decide about the call that waits; return what people are shown of it."""
    waiting = stage.runner.permissions.waiting
    await until(lambda: bool(waiting))
    (block,) = waiting
    await stage.call("permission.decide", block_id=block, decision=decision)
    return f"{stage.context.document.header(block).tool_name}: {stage.text(block)}"


async def test_agent_reads_and_writes_live_files_and_runs_commands(tmp_path: Path) -> None:
    project = tmp_path / "agent" / "kernel"
    path, outside = str(project / "a.txt"), str(tmp_path / "other.txt")
    last = {"terminalId": "last"}
    steps = [
        request("fs/read_text_file", path=path, line=2, limit=1),
        {"until_file": "typed"},
        request("fs/write_text_file", path=path, content="one\ntwo\n3\n"),
        request("fs/write_text_file", path=outside, content="x"),
        request("terminal/create", command="echo", args=["hi there"], cwd=str(project)),
        request("terminal/wait_for_exit", **last),
        request("terminal/output", **last),
        request("terminal/create", command="sleep 600"),
        request("terminal/kill", **last),
        request("terminal/output", **last),
        request("terminal/release", **last),
        request("terminal/output", **last),
        request("terminal/create", command="echo $$; sleep 600"),
    ]
    async with AsyncExitStack() as stack:
        stage = await open_agent(tmp_path / "agent", stack, prompts=[steps])
        (project / "a.txt").write_text("one\ntwo\nthree\n")
        asking = asyncio.create_task(stage.ask())
        await until(lambda: len(stage.answers()) > 0)
        await stage.call("file.edit", path="a.txt", old_text="one", new_text="eins")
        await stage.let("typed")
        shown = [await decide(stage, "once")]
        shown += [await decide(stage, "always") for _ in range(3)]
        await asking
        assert shown == [
            "file_edit: --- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n eins\n two\n-three\n+3\n",
            "shell: echo 'hi there'",
            "shell: sleep 600",
            "shell: echo $$; sleep 600",
        ]
        assert (project / "a.txt").read_text() == "eins\ntwo\n3\n"
        assert not Path(outside).exists()
        answers = stage.answers()
        assert answers[0] == {"content": "two\n"}
        assert "leads out of the project" in answers[2]["message"]
        assert answers[4] == {"exitCode": 0}
        assert answers[5] == {
            "output": "hi there\n",
            "truncated": False,
            "exitStatus": {"exitCode": 0},
        }
        assert answers[8]["exitStatus"] == {"signal": "SIGTERM"}
        assert "was released" in answers[10]["message"]
        results = [stage.text(one) for one in stage.of_kind(BlockKind.TOOL_RESULT)]
        assert results[1:3] == ["hi there\n", "Ended by bot."]
        assert results[3].endswith("Ended with the turn.")
        assert not [one for one in stage.unfinished() if one.kind != BlockKind.TEXT]
