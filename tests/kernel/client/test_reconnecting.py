"""Three people type while connections break and the kernel restarts; every keystroke is there once.

Set ANTIPHON_LONG for the half-minute version.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

from antiphon_kernel.client.local_replica import ReplicaState
from tests.kernel.client.typists import through, typists_behind
from tests.kernel.served import CuttableProxy, ServedKernel, served_kernel
from tests.waiting import PATIENCE, until

SECONDS = 30.0 if os.environ.get("ANTIPHON_LONG") else 2.0
ALPHABETS = ("abcdefghijklm", "nopqrstuvwxyz", "😀漢é𝄞ßж")


async def trouble(
    served: ServedKernel, proxies: list[CuttableProxy], rng: random.Random, end: float
) -> Counter[str]:
    """Cuts one line, all lines, or the kernel itself."""
    done: Counter[str] = Counter()
    while time.monotonic() < end:
        await asyncio.sleep(rng.uniform(0.05, 0.3))
        event = rng.choices(("cut", "cut all", "restart"), (6, 2, 1))[0]
        done[event] += 1
        if event == "cut":
            rng.choice(proxies).cut()
        elif event == "cut all":
            for proxy in proxies:
                proxy.cut()
        else:
            await served.stop()
            await asyncio.sleep(rng.uniform(0, 0.2))
            await served.start()
            for proxy in proxies:
                proxy.turn_to(served.doors.port)
    return done


async def test_reconnecting_typists_keep_every_keystroke_once_and_converge(tmp_path: Path) -> None:
    rng = random.Random(4)
    async with served_kernel(tmp_path) as served:
        blocks = [await served.block() for _ in range(3)]
        proxies = [CuttableProxy(served.doors.port) for _ in ALPHABETS]
        for proxy in proxies:
            await proxy.start()
        typists = await typists_behind(served, proxies, ALPHABETS, rng, longest=1)
        replicas = [typist.replica for typist in typists]
        end = time.monotonic() + SECONDS
        done, *_ = await asyncio.gather(
            trouble(served, proxies, rng, end),
            *(
                one.type(blocks, 1_000_000, lambda: rng.expovariate(1 / 0.008), end)
                for one in typists
            ),
        )
        await asyncio.gather(*(asyncio.wait_for(one.saved(), PATIENCE) for one in replicas))
        context = await served.context()
        await context.wait_persisted()

        def equal() -> bool:
            return all(
                replica.document.text(block) == context.document.text(block)
                and replica.document.header(block) == context.document.header(block)
                for replica in replicas
                for block in blocks
            )

        await until(equal, "all documents are equal")
        there = Counter("".join(context.document.text(block) for block in blocks))
        assert there == sum((+typist.typed for typist in typists), Counter())
        sys.stdout.write(
            f"\n{sum(one.strokes for one in typists)} keystrokes, {dict(done or {})},"
            f" {sum(proxy.bytes for proxy in proxies)} bytes\n"
        )
        for replica in replicas:
            await replica.close()
        for proxy in proxies:
            await proxy.close()


async def test_reconnect_transfers_in_proportion_to_missing_changes(tmp_path: Path) -> None:
    async with served_kernel(tmp_path) as served:
        blocks = [await served.block("x" * 50_000) for _ in range(20)]
        proxy = CuttableProxy(served.doors.port)
        await proxy.start()
        replica = await served.replica(
            locate=lambda: through(served, proxy),
            retry=lambda _: 0.01,
        )
        costs = {}
        context = await served.context()
        for missing in (100, 1_000, 10_000):
            await replica.saved()
            await until(lambda: replica.state is ReplicaState.LIVE)
            before = proxy.bytes
            proxy.cut()
            await until(lambda: replica.state is not ReplicaState.LIVE)
            await served.call("block.append", block_id=blocks[0], text="k" * (missing // 2))
            replica.document.append(blocks[1], "r" * (missing // 2))
            await replica.saved()
            await until(
                lambda: replica.document.text(blocks[0]) == context.document.text(blocks[0])
            )
            costs[missing] = proxy.bytes - before
        sys.stdout.write(f"\nbytes on reconnecting by what was missing: {costs}\n")
        for missing, cost in costs.items():
            assert missing <= cost < 2 * missing + 4_000
        await replica.close()
        await proxy.close()
