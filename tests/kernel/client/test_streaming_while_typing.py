"""A model streams into a block while two people type in it and lose their connections.

Streamed text arrives complete and in order whatever people type in the same block meanwhile, what
they typed is all there, and every replica ends up with the same document. Set ANTIPHON_LONG for
200 runs.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from antiphon_kernel.client.local_replica import ReplicaState
from tests.kernel.client.typists import typists_behind
from tests.kernel.served import CuttableProxy, ServedKernel, served_kernel
from tests.waiting import PATIENCE, until

RUNS = 200 if os.environ.get("ANTIPHON_LONG") else 4
RUNS_PER_KERNEL = min(RUNS, 10)

STREAM = "abcdefghijklmnopqrstuvwxyz ABCDEFG.,\n"
STROKES = 40
PAUSES = (-1, -1, 0, 0, 0.001, 0.004)
"""Seconds between two strokes; below 0 nothing else happens in between."""

ALPHABETS = ("ёжзийклмнопрстуфхцчш", "😀漢字👩‍👩‍👧é̈𝄞")


async def stream(served: ServedKernel, block: str, rng: random.Random, chunks: int) -> str:
    """Append small chunks as a model does; return all of them."""
    written = []
    model = served.kernel.open_session(await served.kernel.principal("model"), "test")
    for _ in range(chunks):
        chunk = "".join(rng.choices(STREAM, k=rng.randint(1, 30)))
        params = {"block_id": block, "text": chunk, "stream": True}
        await served.kernel.call(model, "block.append", params)
        written.append(chunk)
        await asyncio.sleep(rng.choice((0, 0, 0.001, 0.003)))
    await served.kernel.call(model, "block.status", {"block_id": block, "status": "done"})
    return "".join(written)


async def break_connections(proxy: CuttableProxy, rng: random.Random) -> None:
    while True:
        await asyncio.sleep(rng.uniform(0.005, 0.06))
        proxy.cut()


async def one_run(served: ServedKernel, proxies: list[CuttableProxy], seed: int) -> None:
    rng = random.Random(seed)
    label = f"run-{seed}"
    await served.call("context.create", label=label)
    model = served.kernel.open_session(await served.kernel.principal("model"), "test")
    created = await served.kernel.call(
        model, "block.create", {"context": label, "kind": "tool_call"}
    )
    block = str(created["block_id"])
    typists = await typists_behind(served, proxies, ALPHABETS, rng, longest=4, context=label)
    breakers = [
        asyncio.create_task(break_connections(proxy, random.Random(rng.random())))
        for proxy in proxies
    ]
    streamed, *_ = await asyncio.gather(
        stream(served, block, random.Random(rng.random()), chunks=40),
        *(one.type([block], STROKES, lambda: rng.choice(PAUSES)) for one in typists),
    )
    for breaker in breakers:
        breaker.cancel()
    replicas = [typist.replica for typist in typists]
    for replica in replicas:
        await asyncio.wait_for(replica.saved(), PATIENCE)
    context = await served.context(label)
    await context.wait_persisted()
    kernel_text = context.document.text(block)
    await until(
        lambda: all(
            replica.state is ReplicaState.LIVE
            and replica.document.text(block) == kernel_text
            and replica.document.header(block) == context.document.header(block)
            for replica in replicas
        ),
        f"all documents of seed {seed} are equal",
    )
    assert "".join(one for one in kernel_text if one in STREAM) == streamed
    for typist in typists:
        there = Counter(one for one in kernel_text if one in typist.alphabet)
        assert there == +typist.typed
    for replica in replicas:
        await replica.close()


@pytest.mark.parametrize("first", range(0, RUNS, RUNS_PER_KERNEL))
async def test_streaming_while_typing_over_cut_connections_loses_nothing(
    tmp_path: Path, first: int
) -> None:
    async with served_kernel(tmp_path) as served:
        proxies = [CuttableProxy(served.doors.port) for _ in range(2)]
        for proxy in proxies:
            await proxy.start()
        try:
            for seed in range(first, first + RUNS_PER_KERNEL):
                await one_run(served, proxies, seed)
        finally:
            for proxy in proxies:
                await proxy.close()
