"""Tool calls from a client: in order, many at once, across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises
from tests.kernel.served import ServedKernel

NEW = {"role": "user", "kind": "text"}


@pytest.fixture
async def calls(served: ServedKernel) -> AsyncIterator[ToolClient]:
    calls = ToolClient(served.locate)
    yield calls
    await calls.close()


async def test_concurrent_calls_share_one_connection(
    served: ServedKernel, calls: ToolClient
) -> None:
    block = (await calls.call("block.create", NEW))["block_id"]
    await asyncio.gather(
        *(calls.call("block.append", {"block_id": block, "text": f"{one} "}) for one in range(50))
    )
    text = (await calls.call("block.read", {"block_id": block}))["content"]
    assert text == "".join(f"{one} " for one in range(50))
    assert served.doors.connections.members == 1


async def test_tool_client_without_kernel_raises_no_kernel(
    served: ServedKernel, calls: ToolClient
) -> None:
    address = served.locate()
    await calls.call("context.list", {})
    await served.stop()
    unreachable = ToolClient(lambda: address)
    for client in (calls, unreachable):
        with raises(ErrorCode.NO_KERNEL):
            await client.call("context.list", {})
    await served.start()
