"""Cost of an update that another kernel has to carry out, beside one at its owner.

ANTIPHON_STORE=postgresql://... python -m tests.bench.forwarding

Two kernels are processes of their own on one database; the context is the first one's.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from tests.processes import cpu_seconds

KEYSTROKES = 400
STREAMED = 4_000
CALLS = 400


@contextmanager
def kernel_process(data: Path) -> Iterator[KernelAddress]:
    """A kernel on the database in the environment, once it answers; killed at the end."""
    data.parent.mkdir()
    command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json", "--data", str(data)]
    command += ["--project", str(data.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield KernelAddress.model_validate_json(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(10)


async def measure(kernels: list[KernelAddress], client: KernelAddress, block: str) -> str:
    """One client's keystrokes one by one, then many in a row, then calls."""
    replica = Replica(lambda: client)
    running = asyncio.create_task(replica.run())
    while not replica.document.length(block) if block in replica.document else True:
        await asyncio.sleep(0.01)
    took = []
    for _ in range(KEYSTROKES):
        begun = time.perf_counter()
        replica.document.append(block, "x")
        await replica.saved()
        took.append(time.perf_counter() - begun)
        await asyncio.sleep(0.002)
    before, begun = [cpu_seconds(one.pid) for one in kernels], time.perf_counter()
    for _ in range(STREAMED):
        replica.document.append(block, "x")
        await asyncio.sleep(0.001)
    await replica.saved()
    seconds = time.perf_counter() - begun
    spent = [cpu_seconds(one.pid) - was for one, was in zip(kernels, before, strict=True)]
    calls, called = ToolClient(lambda: client), []
    for _ in range(CALLS):
        begun = time.perf_counter()
        await calls.call("block.append", {"block_id": block, "text": "x"})
        called.append(time.perf_counter() - begun)
    await calls.close()
    await replica.close()
    await running
    each = " + ".join(f"{one / STREAMED * 1e6:.0f}" for one in spent)
    return (
        f"update {statistics.median(took) * 1e3:.2f} ms,"
        f" p95 {sorted(took)[int(len(took) * 0.95)] * 1e3:.2f} ms;"
        f" CPU an update {each} µs (owner + other, {STREAMED / seconds:.0f} a second);"
        f" call {statistics.median(called) * 1e3:.2f} ms"
    )


async def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kernels = [
            stack.enter_context(kernel_process(folder / name / "data"))
            for name in ("owner", "other")
        ]
        calls = ToolClient(lambda: kernels[0])
        new = {"kind": "file", "content": "x"}
        block = (await calls.call("block.create", new))["block_id"]
        await calls.close()
        for _ in range(2):
            for name, client in zip(("direct", "forwarded"), kernels, strict=True):
                print(f"{name:10}", await measure(kernels, client, block), flush=True)


if __name__ == "__main__":
    assert os.environ.get("ANTIPHON_STORE"), "ANTIPHON_STORE names the database"
    asyncio.run(main())
