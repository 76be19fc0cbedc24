"""Kernel processes on one Postgres: what an update costs, forwarding, and the end of a kernel."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError
from tests.bench.figures import Figure, figure
from tests.postgres import PostgresServer
from tests.processes import children_of, cpu_seconds, memory_of
from tests.waiting import until

WRITERS: Final = 12
"""Replicas that write, each in a context of its own."""
PAUSE: Final = 0.03
"""Seconds between two keystrokes of one writer."""
MOST: Final = 3
"""Kernels at most."""
TREES: Final = 10
"""Contexts of the kernel that is killed."""


@dataclass(frozen=True)
class Process:
    """A kernel's process, and where it answers."""

    process: asyncio.subprocess.Process
    address: KernelAddress

    def locate(self) -> KernelAddress:
        return self.address


@asynccontextmanager
async def kernels_on(folder: Path, store: str | None, count: int) -> AsyncIterator[list[Process]]:
    """So many kernels, each with a data folder of its own; killed at the end."""
    environment = os.environ | ({} if store is None else {"ANTIPHON_STORE": store})
    started: list[Process] = []
    try:
        for number in range(count):
            data = folder / f"kernel{number}"
            command = ("-m", "antiphon_kernel", "serve", "--json", "--data", str(data))
            project = ("--project", str(folder), "--idle", "0")
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                *project,
                env=environment,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdout is not None
            line = await process.stdout.readline()
            started.append(Process(process, KernelAddress.model_validate_json(line)))
        yield started
    finally:
        for one in started:
            if one.process.returncode is None:
                one.process.kill()
            await one.process.wait()


async def new_block(kernel: Process, label: str) -> tuple[str, str]:
    """A new context of a kernel, and a block in it."""
    calls = ToolClient(kernel.locate)
    await calls.call("context.create", {"label": label})
    made = await calls.call("block.create", {"context": label, "kind": "file"})
    await calls.close()
    return label, str(made["block_id"])


@asynccontextmanager
async def live_replica(kernel: Process, context: str) -> AsyncIterator[Replica]:
    replica = Replica(kernel.locate, context)
    running = asyncio.create_task(replica.run())
    await until(lambda: replica.state is ReplicaState.LIVE)
    yield replica
    await replica.close()
    await running


async def type_in(replica: Replica, block: str, seconds: float) -> list[float]:
    """Milliseconds from each keystroke to when it is acknowledged."""
    took = []
    ends = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < ends:
        replica.document.append(block, "x")
        await replica.saved()
        took.append((time.perf_counter() - begun) * 1e3)
        await asyncio.sleep(PAUSE)
    return took


def spent(server: PostgresServer | None, kernels: Sequence[Process]) -> float:
    """Processor seconds of the kernels and of the database."""
    own = sum(cpu_seconds(one.address.pid) for one in kernels)
    return own if server is None else own + sum(map(cpu_seconds, children_of(server.pid)))


async def measure_updates(
    folder: Path, server: PostgresServer | None, count: int, seconds: float
) -> tuple[list[float], float, float]:
    """Return the latencies of updates (ms), the processor time of one (µs) and a kernel's MB."""
    store = server.url(server.create_database()) if server is not None else None
    async with kernels_on(folder, store, count) as kernels, AsyncExitStack() as stack:
        writers = []
        for number in range(WRITERS):
            kernel = kernels[number % count]
            context, block = await new_block(kernel, f"c{number}")
            replica = await stack.enter_async_context(live_replica(kernel, context))
            writers.append((replica, block))
        before = spent(server, kernels)
        took = await asyncio.gather(*(type_in(*one, seconds) for one in writers))
        latencies = [one for each in took for one in each]
        each = (spent(server, kernels) - before) / len(latencies) * 1e6
        memory = sum(memory_of(one.address.pid) for one in kernels) / count / 1e6
        return latencies, each, memory


async def measure_forwarding(
    folder: Path, server: PostgresServer, seconds: float
) -> tuple[list[float], list[float], float, float]:
    """Return latencies at the owner and by another kernel (ms), and what each spends on it (µs)."""
    store = server.url(server.create_database())
    async with kernels_on(folder, store, 2) as (owner, other):
        context, block = await new_block(owner, "c")
        took = []
        shares = []
        for kernel in (owner, other):
            async with live_replica(kernel, context) as replica:
                before = [cpu_seconds(one.address.pid) for one in (owner, other)]
                took.append(await type_in(replica, block, seconds))
                now = [cpu_seconds(one.address.pid) for one in (owner, other)]
                shares.append(
                    [(b - a) / len(took[-1]) * 1e6 for a, b in zip(before, now, strict=True)]
                )
        return took[0], took[1], shares[0][0], sum(shares[1])


async def measure_takeover(folder: Path, server: PostgresServer) -> list[float]:
    """Return after how many seconds each context of a killed kernel is written in again."""
    store = server.url(server.create_database())
    async with kernels_on(folder, store, 2) as (owner, other):
        blocks = [(await new_block(owner, f"c{number}"))[1] for number in range(TREES)]
        owner.process.kill()
        begun = time.perf_counter()

        async def write_again(block: str) -> float:
            calls = ToolClient(other.locate)
            while True:
                try:
                    await calls.call("block.append", {"block_id": block, "text": "x"})
                    break
                except AntiphonError:
                    await asyncio.sleep(0.05)
            await calls.close()
            return time.perf_counter() - begun

        return list(await asyncio.gather(*map(write_again, blocks)))


async def measure_kernels(folder: Path, server: PostgresServer, seconds: float) -> list[Figure]:
    """Measure one kernel on SQLite, one to three on Postgres, forwarding, and a takeover."""

    def place(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    usual, cost, memory = await measure_updates(place("sqlite"), None, 1, seconds)
    found = [
        figure("keystroke to acknowledgement, one kernel, SQLite", "ms", usual),
        figure("processor time of an update, one kernel, SQLite", "µs", [cost]),
        figure("memory of a kernel, SQLite", "MB", [memory]),
    ]
    for count in range(1, MOST + 1):
        crowd = f"{count} kernel{'s' if count > 1 else ''}, Postgres"
        took, each, size = await measure_updates(place(f"on{count}"), server, count, seconds)
        found += [
            figure(
                f"keystroke to acknowledgement, {crowd}",
                "ms",
                took,
                baseline=usual,
                against="SQLite",
            ),
            figure(f"processor time of an update with the database's, {crowd}", "µs", [each]),
            figure(f"memory of a kernel, {crowd}", "MB", [size]),
        ]
    near, far, direct, forwarded = await measure_forwarding(place("forwarding"), server, seconds)
    takeover = await measure_takeover(place("takeover"), server)
    return [
        *found,
        figure("keystroke by another kernel", "ms", far, baseline=near, against="its owner"),
        figure(
            "processor time of an update by another kernel, both kernels",
            "µs",
            [forwarded],
            baseline=[direct],
            against="its owner",
        ),
        figure("takeover of a killed kernel's contexts", "s", takeover, budget=10),
    ]
