"""SIGTERM: everybody is told why, what was half done is brought to an end, and all is on disk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.yjs.frames import SyncStep1, encode_frame
from tests.kernel.daemon.test_kernel_process import first_line, kernel
from tests.waiting import PATIENCE

REASON = "The kernel is shutting down."
STREAMED = "streamed, and in no block yet"


class Running:
    """A kernel process, and how to speak to it."""

    def __init__(self, process: subprocess.Popen[str], data: Path) -> None:
        self.process = process
        self.data = data
        self.address: KernelAddress = first_line(process)
        self.calls = ToolClient(lambda: self.address)

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.calls.call(tool, params)

    async def socket(self, path: str) -> ClientConnection:
        base = self.address.http.replace("http", "ws", 1)
        return await connect(f"{base}{path}?token={self.address.token}", max_size=None)

    async def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(self.process.wait, PATIENCE) == 0


@contextlib.asynccontextmanager
async def running(data: Path, project: Path) -> AsyncIterator[Running]:
    with kernel(data, project) as process:
        one = Running(process, data)
        yield one
        await one.calls.close()


async def goodbye(socket: ClientConnection) -> tuple[int | None, str | None]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE)
    return socket.close_code, socket.close_reason


@pytest.mark.parametrize("path", ["/sync/default", "/call"])
async def test_clients_are_told_with_a_code_and_a_reason(tmp_path: Path, path: str) -> None:
    async with running(tmp_path / "data", tmp_path) as one:
        sockets = [await one.socket(path) for _ in range(3)]
        for socket in sockets:
            if path == "/call":
                await socket.send(json.dumps({"id": 1, "tool": "session.whoami"}))
            else:
                await socket.send(encode_frame(SyncStep1(b"\x00")))
            await socket.recv()
        ending = asyncio.create_task(one.end())
        assert [await goodbye(socket) for socket in sockets] == [(1012, REASON)] * 3
        await ending


async def test_sigterm_keeps_answered_calls_and_a_prefix_of_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path / "data", tmp_path) as one:
        made = await one.call("block.create", role="user", kind="text", content="")
        block = made["block_id"]
        socket = await one.socket("/call")
        for number in range(300):
            insert = {"block_id": block, "offset": 0, "insert": f"{number} "}
            await socket.send(json.dumps({"id": number, "tool": "block.splice", "params": insert}))
        ending = asyncio.create_task(one.end())
        answered = 0
        with contextlib.suppress(ConnectionClosed):
            while True:
                answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
                answered += "result" in answer
        assert (socket.close_code, socket.close_reason) == (1012, REASON)
        await ending
    async with running(tmp_path / "data", tmp_path) as one:
        text = (await one.call("block.read", block_id=block))["content"]
        numbers = [int(word) for word in text.split()][::-1]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= answered


async def test_sigterm_writes_streamed_text_and_marks_running_blocks(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data, tmp_path) as one:
        model = ToolClient(lambda: one.address, as_name="aria")
        made = await model.call("block.create", {"kind": "tool_call", "content": "I "})
        block = made["block_id"]
        await model.call("block.append", {"block_id": block, "text": STREAMED, "stream": True})
        await one.end()
        await model.close()
    assert not (data / "kernel.json").exists()
    wal = data / "journal.db-wal"
    assert not wal.exists() or wal.stat().st_size == 0
    with sqlite3.connect(f"file:{data}/journal.db?immutable=1", uri=True) as alone:
        # Everything is in the file itself.
        (last,) = alone.execute(
            "SELECT operation FROM ops ORDER BY context, seq DESC LIMIT 1"
        ).fetchone()
        assert last == "interrupt"
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    async with running(data, tmp_path) as one:
        read = await one.call("block.read", block_id=block)
        assert read["content"] == "I " + STREAMED
        (found,) = (await one.call("block.list"))["blocks"]
        assert (found["status"], found["stop_reason"]) == ("error", "interrupted")


async def test_client_that_does_not_read_its_goodbye_holds_nobody_up(tmp_path: Path) -> None:
    async with running(tmp_path / "data", tmp_path) as one:
        made = await one.call("block.create", role="user", kind="text", content="x" * 4_000_000)
        deaf = await one.socket("/sync/default")
        await deaf.send(encode_frame(SyncStep1(b"\x00")))
        deaf.transport.pause_reading()
        append = {"block_id": made["block_id"], "text": "y" * 4_000_000}
        await one.calls.call("block.append", append)
        await one.end()
        deaf.transport.abort()
