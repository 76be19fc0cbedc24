"""Writes through a kernel and says what has been acknowledged.

Every line on standard output is a JSON fact: `["block", name, id]`, `["word", name, number]`,
`["pair", number]`, `["context", label]`. It ends when the kernel does.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

from antiphon_kernel.client.address import KernelAddress, read_address
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError
from tests.waiting import PATIENCE

MARK = " 漢😀 "


def word(number: int) -> str:
    return f"{number}{MARK}"


def numbers(text: str) -> list[int]:
    """The numbers of a text made of whole words only.

    Raises:
        ValueError: if there is half a word in it.
    """
    if not text:
        return []
    if not text.endswith(MARK):
        raise ValueError(f"half a word: ...{text[-40:]!r}")
    return [int(one) for one in text.removesuffix(MARK).split(MARK)]


def pair(number: int) -> str:
    return f"{number} first 😀\n{number} second 漢\n"


Locate = Callable[[], KernelAddress]


def say(*fact: object) -> None:
    # One write call a fact: whatever has been said is in the pipe, and whole.
    os.write(1, (json.dumps(fact) + "\n").encode())


async def create(calls: ToolClient, name: str, kind: str, content: str = "") -> str:
    block = str((await calls.call("block.create", {"kind": kind, "content": content}))["block_id"])
    say("block", name, block)
    return block


async def append(calls: ToolClient) -> None:
    block = await create(calls, "append", "tool_call")
    for number in range(10**9):
        await calls.call("block.append", {"block_id": block, "text": word(number)})
        say("word", "append", number)


async def stream(calls: ToolClient) -> None:
    """Streamed text counts as acknowledged when a later call has flushed it."""
    block = await create(calls, "stream", "tool_call")
    for number in range(10**9):
        await calls.call("block.append", {"block_id": block, "text": word(number), "stream": True})
        if number % 10 == 9:
            await calls.call("block.read", {"block_id": block})
            await calls.call("block.append", {"block_id": block, "text": ""})
            say("word", "stream", number)


async def edit(calls: ToolClient) -> None:
    """Two lines in one call: both or none."""
    block = await create(calls, "pair", "text", pair(0))
    for number in range(1, 10**9):
        first, second = pair(number).splitlines()
        operations = [
            {"op": "replace", "start_line": 0, "end_line": 1, "content": first},
            {"op": "replace", "start_line": 1, "end_line": 2, "content": second},
        ]
        await calls.call("block.edit", {"block_id": block, "operations": operations})
        say("pair", number)


async def found(calls: ToolClient, prefix: str) -> None:
    for number in range(10**9):
        label = f"{prefix}-{number}"
        await calls.call("context.create", {"label": label})
        say("context", label)
        await asyncio.sleep(0.04)


async def type_words(replica: Replica, locate: Locate) -> None:
    """A person at a replica; what counts is what the kernel has acknowledged."""
    running = asyncio.create_task(replica.run())
    while replica.state is not ReplicaState.LIVE:
        await asyncio.sleep(0.001)
    calls = ToolClient(locate, as_name="typist")
    block = await create(calls, "typed", "text")
    while block not in replica.document:
        await asyncio.sleep(0.001)
    for number in range(10**9):
        replica.document.append(block, word(number))
        if number % 3 == 0:
            await replica.saved()
            say("word", "typed", number)
    await running


async def write_until_it_ends(data: Path, prefix: str) -> None:
    """Everybody writes until the kernel does not answer any more."""

    def locate() -> KernelAddress:
        return read_address(data)

    replica = Replica(locate, as_name="typist")
    each = [ToolClient(locate, as_name=name) for name in ("aria", "bert", "amy", "cy")]
    doing = [append(each[0]), stream(each[1]), edit(each[2]), found(each[3], prefix)]
    try:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for one in (*doing, type_words(replica, locate)):
                group.create_task(one)
    except* (AntiphonError, TimeoutError) as failure:
        say("end", str(failure.exceptions[0])[:200])


def write(data: Path, prefix: str) -> None:
    asyncio.run(write_until_it_ends(data, prefix))
    os._exit(0)
