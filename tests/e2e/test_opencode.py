"""opencode as an agent in a real context: everything that people and it do there together."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Event
from typing import Any, cast

from acp import spawn_agent_process
from acp.interfaces import Client
from acp.schema import TextContentBlock

from antiphon_kernel.client.address import stated_address
from antiphon_kernel.client.tool_client import ToolClient
from tests import acp_schema
from tests.app.acp_agent.connected import Editor
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message as fields_of
from tests.processes import children_of, has_ended
from tests.programs.model_server import Answer, ModelServer, ToolUse
from tests.programs.opencode import Opencode
from tests.waiting import PATIENCE, until, wait_until


class Conversation:
    """A person's view of the context in which opencode answers, and the model that it asks."""

    def __init__(self, machine: Machine, model: ModelServer) -> None:
        self.machine, self.model = machine, model
        self.recorded = machine.home / "lines"
        self.recorded.mkdir()
        self._calls = ToolClient(lambda: stated_address(machine.data))

    async def configure(self) -> None:
        """Make opencode an agent of the project, with its lines recorded and our MCP server."""
        home = self.machine.home
        # The agent's home is not the user's; what it starts is the user's again.
        mcp = ["env", *(f"{name}={one}" for name, one in self.machine.env.items()), ANTIPHON, "mcp"]
        opencode = Opencode.at(
            home / "opencode",
            self.machine.project,
            self.model,
            mcp={"antiphon": mcp},
            permission={"edit": "ask"},
        )
        env = {key: one for key, one in opencode.env.items() if os.environ.get(key) != one}
        recorder = [sys.executable, acp_schema.__file__, str(self.recorded)]
        command = [*recorder, str(opencode.path), "acp"]
        table = [f"command = {json.dumps(command)}", "[agents.opencode.env]"]
        table += [f"{key} = {json.dumps(one)}" for key, one in env.items()]
        config = home / "config" / "antiphon" / "config.toml"
        lines = ["[discovery]", "local_ports = []", "[agents.opencode]", *table]
        config.write_text("\n".join(lines), "utf-8")

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self._calls.call(tool, params)

    async def send(self, text: str, *answers: Answer) -> str:
        """Send opencode a message; `answers` are what its model then says."""
        self.model.script.extend(answers)
        new = {"role": "user", "kind": "text", "status": "done", "content": f"@opencode {text}"}
        return str((await self.call("block.create", **new))["block_id"])

    async def answered(self, message: str) -> list[dict[str, Any]]:
        """Return the blocks that answer a message, with their texts, once the turn has ended."""
        waiting = self._calls.another()
        try:
            await waiting.call("turn.wait", {"message": message})
        finally:
            await waiting.close()
        return await self.answers(message)

    async def answers(self, message: str) -> list[dict[str, Any]]:
        found, ids = [], {message}
        for one in (await self.call("block.list"))["blocks"]:
            if one.get("parent_id") in ids:
                ids.add(one["block_id"])
                read = await self.call("block.read", block_id=one["block_id"])
                found.append({**one, "text": read["content"]})
        return found

    async def sees(
        self, message: str, condition: Callable[[dict[str, Any]], object]
    ) -> dict[str, Any]:
        """Wait for a block that answers a message; return it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                blocks = await self.answers(message)
                found = [one for one in blocks if condition(one)]
                if found:
                    return found[-1]
                await asyncio.sleep(0.05)

    def process(self) -> int:
        """Return the id of the process of opencode that was started last."""
        newest = max(self.recorded.iterdir(), key=lambda path: path.stat().st_ctime_ns)
        return int(newest.name)

    async def close(self) -> None:
        await self._calls.close()


@asynccontextmanager
async def conversing(machine: Machine) -> AsyncIterator[Conversation]:
    with ModelServer() as model:
        one = Conversation(machine, model)
        try:
            yield one
        finally:
            await one.close()


def says(text: str) -> Callable[[dict[str, Any]], object]:
    return lambda block: text in block["text"]


async def a_person_types_into_what_it_writes(here: Conversation) -> None:
    terminal, going_on = here.machine.terminal(), Event()
    here.model.script.append(["The first line. ", going_on, "The end."])

    def type_into_it() -> None:
        terminal.wait_for("live")
        terminal.type("@opencode Write something.")
        terminal.press("enter")
        terminal.wait_for("The first line.")
        terminal.press("up", "enter")
        terminal.wait_for("EDIT")
        terminal.press("ctrl+home")
        terminal.type("And: ")
        terminal.wait_for("And: The first line.")
        going_on.set()
        terminal.wait_for("And: The first line. The end.")
        terminal.press("escape")
        terminal.press("ctrl+q")
        terminal.wait_for_end()

    await asyncio.to_thread(type_into_it)
    (message,) = [one for one in (await here.call("block.list"))["blocks"] if one["role"] == "user"]
    (answer,) = await here.answered(message["block_id"])
    assert answer["text"] == "And: The first line. The end."
    assert answer["username"] == "opencode"


async def it_calls_a_tool_and_is_told_what_was_typed(here: Conversation) -> None:
    path = str(here.machine.project / "README.md")
    message = await here.send(
        "Read it.", [ToolUse("read", {"filePath": path})], ["I have read it."]
    )
    call, result, text = await here.answered(message)
    assert (call["kind"], call["status"]) == ("tool_call", "done")
    assert call["metadata"]["agent_call"]["locations"] == [{"path": "README.md"}]
    assert "With two lines." in result["text"]
    assert text["text"] == "I have read it."
    assert "+And: The first line. The end." in json.dumps(here.model.requests[-2]["messages"])


async def it_asks_before_it_changes_a_file_that_a_person_has_open(here: Conversation) -> None:
    path = here.machine.project / "README.md"
    change = {"filePath": str(path), "oldString": "With two", "newString": "With three"}
    await here.call("file.open", path="README.md")
    message = await here.send("Change it.", [ToolUse("edit", change)], ["Changed."])
    call = await here.sees(message, lambda one: one.get("permission") == "asked")
    assert "+With three lines." in call["text"]
    # A person goes on typing meanwhile, and what they type is saved before they answer.
    edit = {"op": "replace", "start_line": 0, "end_line": 1, "content": "# Our project\n"}
    await here.call("block.edit", block_id="file:README.md", operations=[edit])
    await here.call("file.save", path="README.md")
    await here.call("permission.decide", block_id=call["block_id"], decision="once")
    *_, text = await here.answered(message)
    assert text["text"] == "Changed."
    await here.call("file.save", path="README.md")  # as it is by itself, a second later
    assert path.read_text() == "# Our project\n\nWith three lines.\n"
    blamed = await here.call("block.blame", block_id="file:README.md")
    assert "opencode" in {one["username"] for one in blamed["runs"]}
    assert here.model.results()[-1].startswith("Edit applied")
    change |= {"oldString": "With three", "newString": "With four"}
    message = await here.send("Once more.", [ToolUse("edit", change)])  # a no ends its turn
    call = await here.sees(message, lambda one: one.get("permission") == "asked")
    await here.call("permission.decide", block_id=call["block_id"], decision="no")
    await here.answered(message)
    assert "With three" in path.read_text()


async def it_edits_a_block_that_a_person_is_in_over_mcp(here: Conversation) -> None:
    machine = here.machine
    made = await here.call("block.create", **fields_of("one\ntwo\nthree\n"))
    block = str(made["block_id"])
    terminal = machine.terminal("join")

    def type_into_it(text: str) -> None:
        terminal.type(text)
        wait_until(lambda: text in machine.content(block), "what was typed has arrived")

    def open_it() -> None:
        terminal.wait_for("three")
        terminal.edit_last_cell()
        type_into_it("four ")

    await asyncio.to_thread(open_it)
    operation = {"op": "replace", "start_line": 2, "end_line": 3, "content": "LAST"}
    edit = {"block_id": block, "base_version": made["version"], "operations": [operation]}
    asked = await here.send(
        "Change the last line.",
        [ToolUse("antiphon_read_block", {"block_id": block})],
        [ToolUse("antiphon_edit", edit)],
        ["I have changed it."],
    )
    *_, text = await here.answered(asked)
    assert text["text"] == "I have changed it."
    read, edited = here.model.results()[-2:]
    assert "2\\tthree" in read
    assert "context_version" in edited
    await asyncio.to_thread(terminal.wait_for, "LAST")
    await asyncio.to_thread(type_into_it, "five")
    terminal.press("escape", "ctrl+q")
    await asyncio.to_thread(terminal.wait_for_end)
    content = str((await here.call("block.read", block_id=block))["content"])
    assert content == "four fiveone\ntwo\nLAST\n"
    blamed = (await here.call("block.blame", block_id=block))["runs"]
    wrote = [content[one["start"] : one["end"]] for one in blamed if one["username"] == "opencode"]
    assert "".join(wrote) == "LAST"


async def it_is_asked_and_asks_through_an_editor_that_speaks_acp_too(here: Conversation) -> None:
    editor, machine = Editor(), here.machine
    (context,) = (await here.call("context.list"))["contexts"]
    change = {
        "filePath": str(machine.project / "README.md"),
        "oldString": "With three",
        "newString": "With four",
    }
    here.model.script.extend([[ToolUse("edit", change)], ["It says four."]])
    async with spawn_agent_process(
        cast(Client, editor),
        *(ANTIPHON, "acp"),
        env=machine.env,
        cwd=machine.home,
        observers=[editor.observe],
    ) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = context["context_id"]
        await agent.load_session(session_id=session, cwd=str(machine.project), mcp_servers=[])
        await editor.sees("**opencode:** And: The first line. The end.")
        editor.answer.set_result("once")
        prompt: list[Any] = [TextContentBlock(type="text", text="@opencode Change it for good.")]
        answered = await agent.prompt(session_id=session, prompt=prompt)
        assert answered.stop_reason == "end_turn"
    assert editor.said().endswith("It says four.")
    ((asked, offered),) = editor.asked
    assert offered == ["once", "always", "no"]
    difference = editor.calls()[asked.tool_call_id]["content"][0]
    assert difference.old_text == "# Our project\n\nWith three lines.\n"
    assert difference.new_text == "# Our project\n\nWith four lines.\n"
    assert editor.problems == []


async def it_is_stopped_in_the_middle_of_its_answer(here: Conversation) -> None:
    never, process = Event(), here.process()
    message = await here.send("Write.", ["A long ", never, "story."])
    await here.sees(message, says("A long"))
    await here.call("turn.interrupt", message=message)
    (answer,) = await here.answered(message)
    assert (answer["text"], answer["stop_reason"]) == ("A long ", "interrupted")
    never.set()
    (answer,) = await here.answered(await here.send("Go on.", ["Gone on."]))
    assert answer["text"] == "Gone on."
    assert here.process() == process


async def it_is_killed_and_its_session_outlives_that_and_the_kernel(here: Conversation) -> None:
    never, process = Event(), here.process()
    message = await here.send("Write.", ["Half of ", never])
    await here.sees(message, says("Half of"))
    os.kill(process, signal.SIGKILL)
    text, error = await here.answered(message)
    never.set()
    assert text["text"] == "Half of " and text["status"] == "error"
    assert error["kind"] == "error" and "opencode" in error["text"]
    await here.close()
    await asyncio.to_thread(here.machine.end_kernel)
    await asyncio.to_thread(here.machine.succeed, "call", "session.whoami")
    (answer,) = await here.answered(await here.send("Still there?", ["Still here."]))
    assert answer["text"] == "Still here."
    assert here.process() != process
    assert "I have read it." in json.dumps(here.model.requests[-1]["messages"])


async def test_opencode_takes_part_in_a_context(machine: Machine) -> None:
    async with conversing(machine) as here:
        await here.configure()
        await a_person_types_into_what_it_writes(here)
        await it_calls_a_tool_and_is_told_what_was_typed(here)
        await it_asks_before_it_changes_a_file_that_a_person_has_open(here)
        await it_edits_a_block_that_a_person_is_in_over_mcp(here)
        await it_is_asked_and_asks_through_an_editor_that_speaks_acp_too(here)
        await it_is_stopped_in_the_middle_of_its_answer(here)
        await it_is_killed_and_its_session_outlives_that_and_the_kernel(here)
        kernel = machine.kernel().pid
        started = [int(path.name) for path in here.recorded.iterdir()]
        await asyncio.to_thread(machine.end_kernel)
    assert len(started) == 2
    await until(lambda: all(map(has_ended, (*started, *children_of(kernel)))))
    for path in here.recorded.iterdir():
        lines = acp_schema.AcpLines.recorded(path)
        assert (acp_schema.AGENT, "session/prompt") in lines.checked
