"""A kernel that is killed while a model writes and a person types in the same block."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path

from antiphon_kernel.client.address import read_address
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.types.enums import BlockKind, Role, Status
from tests.recordings import numbered_recording
from tests.waiting import PATIENCE, until

TYPED = "«typed 👩‍👩‍👧»"


async def start_kernel(data: Path, project: Path, *arguments: str) -> Process:
    command = [sys.executable, "-m", "antiphon_kernel", "serve", "--data", str(data)]
    return await asyncio.create_subprocess_exec(
        *command, "--project", str(project), *arguments, stdout=DEVNULL
    )


def streaming_block(replica: Replica) -> str | None:
    """The text block of the model."""
    document = replica.document
    for block in document.block_ids():
        header = document.header(block)
        if (header.kind, header.role) == (BlockKind.TEXT, Role.MODEL):
            return block
    return None


async def test_kernel_killed_in_mid_stream_keeps_acknowledged_text_and_interrupts_block(
    tmp_path: Path,
) -> None:
    recorded = numbered_recording(tmp_path / "aria.jsonl", model="aria", words=2000, pause_ms=5)
    data = tmp_path / "data"
    replica = Replica(lambda: read_address(data))
    running = asyncio.create_task(replica.run())
    kernel = await start_kernel(data, tmp_path, "--play", str(recorded.path))
    try:
        await until(lambda: replica.state is ReplicaState.LIVE, "the first connection")
        await until(lambda: streaming_block(replica) is not None, "the model begins")
        block = streaming_block(replica)
        assert block is not None
        await until(lambda: len(replica.document.text(block)) > 200, "some text")
        replica.document.splice(block, 10, 0, TYPED)
        await asyncio.wait_for(replica.saved(), PATIENCE)
        await until(lambda: len(replica.document.text(block)) > 400, "more text")

        os.kill(kernel.pid, signal.SIGKILL)
        await kernel.wait()
        await until(lambda: replica.state is not ReplicaState.LIVE, "the loss is noticed")
        seen = replica.document.text(block)
        replica.document.splice(block, 0, 0, "offline ")
        kernel = await start_kernel(data, tmp_path)
        await until(lambda: replica.state is ReplicaState.LIVE, "the reconnect")
        await asyncio.wait_for(replica.saved(), PATIENCE)
        await until(
            lambda: replica.document.header(block).status == Status.ERROR, "the block is ended"
        )
        assert replica.document.header(block).stop_reason == "interrupted"
        text = replica.document.text(block)
        assert text.startswith("offline " + seen)
        assert text.count(TYPED) == 1
        assert recorded.text.startswith(text.removeprefix("offline ").replace(TYPED, ""))
    finally:
        try:
            await asyncio.wait_for(replica.close(), PATIENCE)
            await asyncio.wait_for(running, PATIENCE)
        finally:
            kernel.terminate()
            await asyncio.wait_for(kernel.wait(), PATIENCE)
