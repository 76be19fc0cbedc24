"""Cost of a tool call over MCP beside the same call over a WebSocket, in the kernel's process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from tests.bench.fanout.comparison import serving
from tests.bench.figures import Figure, figure
from tests.processes import cpu_seconds

CALLS: Final = 300
ERAS: Final = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}


async def measure_calls(address: KernelAddress, process: int) -> dict[str, float]:
    """Return the processor time of a call, in milliseconds, by the way that it takes."""

    async def cost(call: Callable[[], Awaitable[object]]) -> float:
        await call()
        before = cpu_seconds(process)
        for _ in range(CALLS):
            await call()
        return (cpu_seconds(process) - before) / CALLS * 1_000

    calls, costs = ToolClient(lambda: address), dict[str, float]()
    try:
        new = {"kind": "text", "status": "done", "content": "A line of text.\n" * 20}
        said = {"block_id": (await calls.call("block.create", new))["block_id"]}
        read = {**said, "line_numbers": True}
        costs["WebSocket"] = await cost(lambda: calls.call("block.read", read))
        headers = {"Authorization": f"Bearer {address.token}"}
        for name, mode in ERAS.items():
            async with (
                httpx2.AsyncClient(headers=headers, verify=False) as http,
                Client(
                    streamable_http_client(f"{address.http}/mcp", http_client=http), mode=mode
                ) as client,
            ):
                await client.list_tools()
                costs[name] = await cost(lambda: client.call_tool("read_block", said))
    finally:
        await calls.close()
    return costs


def measured_calls(folder: Path) -> Iterator[Figure]:
    """Yield a figure for each era of MCP."""
    folder.mkdir()
    command = (sys.executable, "-m", "antiphon_kernel", "serve", "--json")
    with serving(*command, "--data", str(folder / "data"), "--project", str(folder)) as started:
        said, process = started
        costs = asyncio.run(measure_calls(KernelAddress.model_validate(said), process))
    baseline = [costs["WebSocket"]]
    for era in ERAS:
        yield figure(
            f"call of a tool over MCP {era}",
            "ms",
            [costs[era]],
            baseline=baseline,
            against="over a WebSocket",
        )
