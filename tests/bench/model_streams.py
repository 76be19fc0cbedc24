"""Cost of models that are asked through their libraries: four that stream, and one that is idle.

The kernel and the server of the models are processes of their own, apart from each other.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.providers.local import packaged_model
from antiphon_kernel.providers.opening import open_provider
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.types.errors import AntiphonError
from tests.bench.fanout.comparison import serving
from tests.bench.figures import Figure, figure
from tests.local_model import local_servers
from tests.processes import cpu_seconds, memory_of
from tests.waiting import until
from tests.wire.answering import PIECE, Said, answer
from tests.wire.asking import MODELS, ask, config_at, prompt_of
from tests.wire.server import FORMATS, WireAnswer, WireRequest, WireServer

RATE: Final = 100
"""Events a second of each model; each is one token or more."""
SECONDS: Final = 4.0
SPARE: Final = 8.0
"""Seconds for which the models stream before and after what is measured."""
IDLE: Final = 40
SAID: Final = "x" * (PIECE - 1) + " "


def config_of(server: WireServer) -> str:
    """Return a configuration with a model of each format, named as its kind."""
    tables = ["[discovery]\nenvironment = false\nlocal_ports = []"]
    for kind in FORMATS:
        tables.append(
            f'[models.{kind}]\nkind = "{kind}"\nmodel = "{MODELS[kind]}"\ntools = []\n'
            f'base_url = "{server.base_url(kind)}"\nkey_env = "ANTIPHON_BENCH_KEY"'
        )
    return "\n\n".join(tables)


def paced_answer(request: WireRequest) -> WireAnswer:
    assert request.kind is not None
    events = round(RATE * (SECONDS + SPARE))
    return answer(request.kind, Said(SAID * events)).paced(RATE)


async def streaming_cpu(folder: Path) -> float:
    """Return how much of a processor the kernel takes while four models stream, in percent."""
    async with WireServer() as server:
        server.reply = paced_answer
        config = folder / "config" / "antiphon" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(config_of(server), "utf-8")
        command = ["env", "ANTIPHON_BENCH_KEY=secret", f"XDG_CONFIG_HOME={folder / 'config'}"]
        command += [f"XDG_STATE_HOME={folder / 'state'}", sys.executable, "-m", "antiphon_kernel"]
        command += ["serve", "--json", "--data", str(folder / "data"), "--project", str(folder)]
        with serving(*command) as (said, process):
            address = KernelAddress.model_validate(said)
            return await watched_cpu(address, process)


async def watched_cpu(address: KernelAddress, process: int) -> float:
    replica, calls = Replica(lambda: address), ToolClient(lambda: address)
    running = asyncio.create_task(replica.run())

    def streams() -> int:
        document = replica.document
        return sum(
            header.role == Role.MODEL and header.status == Status.RUNNING
            for header in map(document.header, document.block_ids())
        )

    try:
        names = " ".join(f"@{kind}" for kind in FORMATS)
        said = {"role": "user", "kind": "text", "content": f"{names} Go on."}
        block = (await calls.call("block.create", said))["block_id"]
        await calls.call("block.status", {"block_id": block, "status": "done"})
        await until(lambda: streams() == len(FORMATS), "four models that stream")
        before = cpu_seconds(process)
        await asyncio.sleep(SECONDS)
        used = cpu_seconds(process) - before
        assert streams() == len(FORMATS), "a model was done before the end"
        return used / SECONDS * 100
    finally:
        await replica.close()
        await running
        await calls.close()


async def idle_bytes() -> float:
    """Return the memory that a model takes that has been asked once, its library aside."""
    async with WireServer() as server, AsyncExitStack() as stack:
        server.reply = lambda request: answer(request.kind or FORMATS[0], Said("Well."))

        async def ask_one(number: int) -> None:
            provider = open_provider(config_at(server, FORMATS[number % len(FORMATS)]))
            stack.push_async_callback(provider.close)
            await ask(provider, prompt_of())

        for number in range(len(FORMATS)):
            await ask_one(number)
        gc.collect()
        before = memory_of()
        for number in range(IDLE):
            await ask_one(number)
        gc.collect()
        return (memory_of() - before) / IDLE


async def local_bytes() -> float | None:
    """Return the memory of the server of the small local model; None where it is not installed."""
    try:
        provider = open_provider(packaged_model())
    except AntiphonError:
        return None
    try:
        await ask(provider, prompt_of(tools=(), max_tokens=1))
        return sum(memory_of(server) for server in local_servers(os.getpid()))
    finally:
        await provider.close()


def measured(folder: Path) -> Iterator[Figure]:
    yield figure("memory of an idle model", "KB", [asyncio.run(idle_bytes()) / 1024])
    local = asyncio.run(local_bytes())
    if local is not None:
        yield figure("memory of the server of an idle local model", "MB", [local / 2**20])
    name = f"CPU of the kernel, four models at {RATE} tokens/s each"
    yield figure(name, "%", [asyncio.run(streaming_cpu(folder))])
