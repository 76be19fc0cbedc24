"""A real model on this machine in a real kernel: people write with it, stop it and wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.state import ReplicaState
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.providers.local import packaged_model
from antiphon_kernel.types.block_metadata import USAGE
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.e2e.machine import Machine
from tests.local_model import LIMIT, has_ended, local_servers, looks_into_proc, needs_local_model
from tests.waiting import until, wait_until

pytestmark = needs_local_model

LONG: Final = "Write a very long story about a king, chapter after chapter."
TYPED: Final = "«typed 👩‍👩‍👧»"
WINDOW: Final = 1024
FEW: Final = 8
"""Tokens of an answer of the model brief."""

CONFIG: Final = """
[discovery]
local_ports = []

[models.smol]
kind = "local"
model = "{file}"
max_tokens = 1500
tools = []
window = {{ input = 2048, output = 1500, total = 2048 }}

[models.brief]
kind = "local"
model = "{file}"
max_tokens = {few}
tools = []
window = {{ input = {window}, output = {few}, total = {window} }}
"""


class LocalKernel:
    """A kernel process with two local models, at home in a folder."""

    def __init__(self, folder: Path) -> None:
        self._project = folder / "project"
        self._data = self._project / ".antiphon"
        self._project.mkdir()
        config = folder / "config" / "antiphon" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(
            CONFIG.format(file=packaged_model().model, window=WINDOW, few=FEW), "utf-8"
        )
        self._env = {
            name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")
        } | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        for name in ("STATE", "DATA", "CACHE"):
            self._env[f"XDG_{name}_HOME"] = str(folder / name.lower())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=LIMIT)

    def start(self) -> None:
        command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json"]
        self.process = subprocess.Popen(
            [*command, "--data", str(self._data), "--project", str(self._project)],
            stdout=subprocess.PIPE,
            text=True,
            env=self._env,
        )
        assert self.process.stdout is not None
        self.address = KernelAddress.model_validate_json(self.process.stdout.readline())


class Talk:
    """One person in a context of their own: their replica, and their calls."""

    def __init__(self, context: str, calls: ToolClient, replica: Replica) -> None:
        self._context = context
        self._calls = calls
        self.replica = replica

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self._calls.call(tool, {"context": self._context, **params})

    async def send(self, text: str) -> str:
        """Send a message and return its block."""
        made = await self.call("block.create", role="user", kind="text", content=text)
        block = str(made["block_id"])
        await self._calls.call("block.status", {"block_id": block, "status": "done"})
        return block

    async def interrupt(self) -> list[str]:
        return list((await self.call("turn.interrupt"))["stopped"])

    async def read(self, block: str) -> str:
        """Return a block's content as the kernel has it."""
        return str((await self._calls.call("block.read", {"block_id": block}))["content"])

    def header(self, block: str) -> BlockHeader:
        return self.replica.document.header(block)

    def text(self, block: str) -> str:
        return self.replica.document.text(block)

    def blocks(self, role: Role, kind: BlockKind = BlockKind.TEXT) -> list[str]:
        """Return the blocks of a role and a kind, in order."""
        document = self.replica.document
        headers = ((block, document.header(block)) for block in document.block_ids())
        return [block for block, one in headers if (one.role, one.kind) == (role, kind)]

    async def answer(self, message: str) -> str:
        """Wait until a model has begun to answer a message; return the block that it writes."""

        def begun() -> list[str]:
            failed = self.blocks(Role.SYSTEM, BlockKind.ERROR)
            failed += self.blocks(Role.MODEL, BlockKind.ERROR)
            assert not failed, [self.text(one) for one in failed]
            written = self.blocks(Role.MODEL)
            return [one for one in written if self.header(one).parent == message and self.text(one)]

        await until(begun, "an answer begins", LIMIT)
        return begun()[0]

    async def ended(self, block: str) -> BlockHeader:
        """Wait until nobody writes a block any more."""
        await until(
            lambda: self.header(block).status in (Status.DONE, Status.ERROR), "the end", LIMIT
        )
        return self.header(block)


@contextlib.asynccontextmanager
async def talk_in(kernel: LocalKernel, context: str) -> AsyncIterator[Talk]:
    """Open a context; in the end whatever runs in it is stopped."""
    calls = ToolClient(lambda: kernel.address)
    await calls.call("context.create", {"label": context})
    replica = Replica(lambda: kernel.address, context)
    running = asyncio.create_task(replica.run())
    talk = Talk(context, calls, replica)
    try:
        await until(lambda: replica.state is ReplicaState.LIVE, "the connection")
        yield talk
        while (await talk.call("turn.queue"))["works"]:
            await talk.interrupt()
    finally:
        await replica.close()
        await running
        await calls.close()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKernel]:
    one = LocalKernel(tmp_path_factory.mktemp("local-model"))
    try:
        one.start()
        yield one
    finally:
        one.close()


async def test_person_types_into_the_answer_as_it_streams_and_stops_it(kernel: LocalKernel) -> None:
    async with talk_in(kernel, "typing") as talk:
        block = await talk.answer(await talk.send(LONG))
        talk.replica.document.splice(block, 1, 0, TYPED)
        await talk.replica.saved()
        assert talk.header(block).status == Status.RUNNING
        seen = len(talk.text(block))
        await until(lambda: len(talk.text(block)) > seen + 20, "the model goes on", LIMIT)

        assert await talk.interrupt() == ["smol"]
        header = await talk.ended(block)
        assert (header.status, header.stop_reason) == (Status.ERROR, "interrupted")
        written = await talk.read(block)
        assert written[1:].startswith(TYPED) and written.count(TYPED) == 1
        await until(lambda: talk.text(block) == written, "all of it in the replica")

        again = await talk.answer(await talk.send("Thank you. Go on."))
        assert again != block
        assert await talk.read(block) == written


async def test_answer_ends_at_the_models_limit_of_tokens(kernel: LocalKernel) -> None:
    async with talk_in(kernel, "limit") as talk:
        block = await talk.answer(await talk.send(f"@brief {LONG}"))
        header = await talk.ended(block)
        assert (header.status, header.stop_reason) == (Status.DONE, "max_tokens")
        await until(lambda: USAGE in talk.header(block).metadata, "the tokens that were used")
        assert talk.header(block).metadata[USAGE]["output_tokens"] == FEW


async def test_request_that_the_model_refuses_as_too_long_is_compacted_and_sent_again(
    kernel: LocalKernel,
) -> None:
    # The estimate counts several digits as one token; this model reads each for itself.
    digits = " ".join(str(10**11 + 7 * number) for number in range(12))
    async with talk_in(kernel, "overflow") as talk:
        said = [
            {"role": role, "content": digits} for _ in range(4) for role in ("user", "assistant")
        ]
        await talk.call("message.append", messages=said)
        before = await talk.call("context.request", model="brief")
        assert before["estimated_tokens"] < WINDOW - 2 * FEW, "the kernel would compact by itself"

        block = await talk.answer(await talk.send("@brief Say hello."))
        assert (await talk.ended(block)).status == Status.DONE
        after = await talk.call("context.request", model="brief")
        assert len(str(after["messages"])) < len(str(before["messages"]))
        assert talk.blocks(Role.SYSTEM), "a summary"
        used = talk.header(block).metadata[USAGE]
        assert used["input_tokens"] <= WINDOW


async def test_two_models_answer_and_the_next_message_waits_for_its_own(
    kernel: LocalKernel,
) -> None:
    async with talk_in(kernel, "queue") as talk:
        both = await talk.send(f"@smol @brief {LONG}")
        await talk.answer(both)
        later = await talk.send("@smol Thank you.")
        works = (await talk.call("turn.queue"))["works"]
        states = [(one["model"], one["message_id"], one["state"]) for one in works]
        assert ("smol", both, "running") in states
        assert states[-1] == ("smol", later, "waiting")

        def answered_by_two() -> bool:
            return len({talk.header(one).author for one in talk.blocks(Role.MODEL)}) == 2

        await until(answered_by_two, "the answer of the other model", LIMIT)
        await talk.call("turn.interrupt", message=both)
        second = await talk.answer(later)
        statuses = {talk.header(one).status for one in talk.blocks(Role.MODEL) if one != second}
        assert Status.RUNNING not in statuses, "two turns of one model at once"


@looks_into_proc
async def test_kernel_killed_in_the_middle_of_an_answer_keeps_it_and_answers_again(
    kernel: LocalKernel,
) -> None:
    async with talk_in(kernel, "killed") as talk:
        block = await talk.answer(await talk.send(LONG))
        talk.replica.document.splice(block, 0, 0, TYPED)
        await talk.replica.saved()
        saved = await talk.read(block)
        servers = local_servers(kernel.process.pid)
        assert servers

        kernel.kill()
        await until(lambda: all(has_ended(one) for one in servers), "the models' servers end")
        await until(lambda: talk.replica.state is not ReplicaState.LIVE, "the loss is noticed")
        await asyncio.to_thread(kernel.start)
        await until(lambda: talk.replica.state is ReplicaState.LIVE, "the reconnect")
        header = await talk.ended(block)
        assert (header.status, header.stop_reason) == (Status.ERROR, "interrupted")
        assert (await talk.read(block)).startswith(saved)
        assert talk.text(block).count(TYPED) == 1

        again = await talk.answer(await talk.send("@brief Say hello."))
        assert (await talk.ended(again)).status == Status.DONE


def test_person_types_into_the_local_demo_in_a_terminal(machine: Machine) -> None:
    typed = "zebracrossing"
    terminal = machine.terminal("demo", "--local")
    terminal.wait_for("live")
    data = machine.kernel().data

    def answer() -> dict[str, Any] | None:
        listed = machine.call(data, "block.list", role="model", kind="text")["blocks"]
        return machine.call(data, "block.read", block_id=listed[0]["block_id"]) if listed else None

    wait_until(answer, "the model begins", LIMIT)
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.press("enter")
    terminal.wait_for("EDIT")
    terminal.type(typed)
    terminal.wait_for(typed)
    wait_until(lambda: typed in (answer() or {}).get("content", ""), "it is in the kernel")
    machine.call(data, "turn.interrupt")
    written = answer()
    assert written is not None and written["status"] in ("done", "error")
    assert written["content"].count(typed) == 1
    terminal.press("escape")
    terminal.wait_for("NAVIGATE")
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
