"""A stock Yjs client (yjs and y-websocket under node) works against the sync door."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from tests.kernel.served import CuttableProxy, ServedKernel
from tests.waiting import PATIENCE, until

SCRIPT = Path(__file__).with_name("stock_client.mjs")


class StockClient:
    """The client's process: what it was told, what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[dict[str, Any]] = []

    def tell(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.said.append(json.loads(line))

    def count(self, key: str) -> int:
        return sum(key in one for one in self.said)

    def last(self, key: str) -> Any:
        return next((one[key] for one in reversed(self.said) if key in one), None)


@asynccontextmanager
async def stock_client(
    modules: Path,
    served: ServedKernel,
    block: str,
    port: int | None = None,
    as_name: str | None = None,
) -> AsyncIterator[StockClient]:
    url = f"ws://127.0.0.1:{port or served.doors.port}/sync"
    token = served.doors.token
    async with stock_client_at(modules, url, token, "default", block, as_name) as client:
        yield client


@asynccontextmanager
async def stock_client_at(
    modules: Path, url: str, token: str, context: str, block: str, as_name: str | None = None
) -> AsyncIterator[StockClient]:
    """Start a client of one context that looks at one block of it."""
    process = await asyncio.create_subprocess_exec(
        "node",
        *(str(SCRIPT), str(modules), url, context, token, block, as_name or ""),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    client = StockClient(process)
    listening = asyncio.create_task(client.listen())
    try:
        await until(lambda: client.last("synced"), "a stock client is synced")
        yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await listening


async def test_stock_client_writes_with_others_sees_them_and_comes_back(
    modules: Path, served: ServedKernel
) -> None:
    block = await served.block("hello 漢字😀")
    document = (await served.context()).document
    ben, proxy = await served.replica("ben"), CuttableProxy(served.doors.port)
    await proxy.start()
    async with stock_client(modules, served, block, proxy.port) as client:

        def both_have(text: str) -> bool:
            return bool(client.last("text") == document.text(block) == text)

        assert client.last("text") == "hello 漢字😀"
        client.tell(insert=[10, "!👩‍👩‍👧"])
        await until(lambda: both_have("hello 漢字😀!👩‍👩‍👧"))
        await served.call("block.append", block_id=block, text=" and back")
        await until(lambda: both_have("hello 漢字😀!👩‍👩‍👧 and back"))
        client.tell(delete=[0, 6])
        expected = "漢字😀!👩‍👩‍👧 and back"
        await until(lambda: both_have(expected))

        # What is typed offline is sent on return.
        for number in range(2):
            proxy.cut()
            client.tell(insert=[0, f"{number}"])
            await served.call("block.append", block_id=block, text=f"-{number}")
            expected = f"{number}{expected}-{number}"
            await until(partial(both_have, expected))

        client.tell(presence={"user": {"name": "eve"}, "cursor": {"anchor": "opaque"}})
        await until(lambda: ben.awareness.others)
        (state,) = ben.awareness.others.values()
        assert state.username == "amy"
        ben.awareness.publish(block, 2, None, Activity.TYPING)
        await until(lambda: [one.get("cursor") for one in client.last("people") or []] == [2])
        client.tell(leave=True)
        await until(lambda: not ben.awareness.others)
    await proxy.close()


async def test_stock_client_writing_into_foreign_draft_is_disconnected(
    modules: Path, served: ServedKernel
) -> None:
    bo = served.kernel.open_session(await served.kernel.principal("bo"), "test")
    new = {"role": "user", "kind": "text", "content": "thank you"}
    draft = (await served.kernel.call(bo, "block.create", new))["block_id"]
    context = await served.context()
    async with stock_client(modules, served, draft) as client:
        client.tell(insert=[0, "!id > PWNED #" + "\n" * 40])
        await until(lambda: client.last("closed") == 4403, "the connection is closed")
    assert context.document.text(draft) == "thank you"


async def authors(served: ServedKernel, block: str) -> list[tuple[str, str]]:
    """A text in pieces, each with the name of its author."""
    read = await served.call("block.read", block_id=block)
    blame = await served.call("block.blame", block_id=block)
    text = read["content"]
    return [(text[one["start"] : one["end"]], one["username"]) for one in blame["runs"]]


async def turn(served: ServedKernel, tool: str, block: str) -> None:
    await served.call(tool, block_id=block, principal="ann")


async def test_stock_client_undo_after_block_undo_duplicates_text(
    modules: Path, served: ServedKernel
) -> None:
    block = await served.block("abc")
    twice = [("a", "amy"), ("b", "ann"), ("bc", "amy")]
    async with stock_client(modules, served, block, as_name="ann") as client:

        async def reads(expected: list[tuple[str, str]]) -> None:
            text = "".join(part for part, _ in expected)
            document = (await served.context()).document
            await until(lambda: document.text(block) == client.last("text") == text)
            assert await authors(served, block) == expected

        client.tell(delete=[1, 1])
        await reads([("ac", "amy")])
        await turn(served, "block.undo", block)
        await reads([("abc", "amy")])
        client.tell(undo=True)
        await reads(twice)
        client.tell(redo=True)
        await reads([("abc", "amy")])
        client.tell(undo=True)
        await reads(twice)
    await served.stop()
    await served.start()
    assert await authors(served, block) == twice
    # To the kernel the second one is something that ann has typed.
    await turn(served, "block.undo", block)
    assert await authors(served, block) == [("abc", "amy")]
    await turn(served, "block.redo", block)
    assert await authors(served, block) == twice


async def test_refused_draft_that_is_sent_again_and_again_disturbs_nobody(
    modules: Path, served: ServedKernel, caplog: pytest.LogCaptureFixture
) -> None:
    block = await served.block("hello")
    context = await served.context()
    ben = await served.replica("ben")
    states: list[ReplicaState] = []
    ben.state_changed.listen(lambda: states.append(ben.state))
    clients = set(context.structure.item_index.lines)
    async with stock_client(modules, served, block) as client:
        draft = f"{context.id}.{served.me.principal.id}.{DRAFT_SEQ_MIN + 7}"
        client.tell(draft={"id": draft, "fields": {"metadata": '{"a":' * 300 + "1" + "}" * 300}})
        await until(lambda: client.count("closed") == 4, "four refusals")
    assert {one["closed"] for one in client.said if "closed" in one} == {4403}
    assert list(context.document.block_ids()) == [block]
    assert set(context.structure.item_index.lines) == clients
    assert set(states) <= {ReplicaState.LIVE}
    assert [one for one in caplog.records if one.exc_info] == []
    await served.call("block.list")


async def test_example_in_the_docs_does_what_it_says(modules: Path, served: ServedKernel) -> None:
    page = (Path(__file__).parents[3] / "docs" / "document-layout.md").read_text()
    (example,) = re.findall(r"```js\n(.*?)```", page, re.DOTALL)
    assert len(example.splitlines()) <= 20
    block = await served.block("hello")
    script = modules / f"example-{os.getpid()}.mjs"
    script.write_text(example)
    url = f"ws://127.0.0.1:{served.doors.port}/sync"
    process = await asyncio.create_subprocess_exec(
        *("node", str(script), url, "default", served.doors.token),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    context = await served.context()
    try:
        await until(lambda: context.document.text(block) == "hello, from JavaScript")
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert line.decode() == f"{block} user file: hello\n"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        script.unlink()
