"""Kernels are killed, stopped and cut off while people, models and Yjs clients write.

A text is made of tokens that each stand there once. What has been acknowledged must be there at the
end, what was not may be; every kernel and every replica shows the same.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import psycopg
import pytest

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.cluster.kernel_processes import KernelCluster, KernelProcess, kernel_cluster
from tests.kernel.server.test_stock_client import StockClient, stock_client_at
from tests.postgres import PostgresServer, binaries
from tests.waiting import until

SECONDS: Final = float(os.environ.get("ANTIPHON_FAULT_SECONDS", "0"))
"""How long harm is done at least: each harm is done once in any case."""

CONTEXTS, REPLICAS, CALLERS, STOCK_CLIENTS, PAUSE = (
    (60, 14, 12, 4, 0.3) if SECONDS > 60 else (6, 2, 2, 1, 2.0)
)

LEASE_SECONDS: Final = 5.0

TAKEOVER_SECONDS: Final = 10.0
"""Seconds within which 19 of 20 contexts of a kernel that is gone must be writable again."""

_UNKNOWN: Final = (ErrorCode.NO_KERNEL, ErrorCode.STORAGE_FAILED, ErrorCode.NOT_OWNER)
"""Codes of calls that may have taken effect, or not."""

_TOKEN: Final = re.compile(r"<\w+:\d+>")


@dataclass
class Ledger:
    """Tokens that were written, by the context they were written in."""

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[str, set[str]] = field(default_factory=dict)
    """Tokens that may be there or not."""
    slowest: float = 0.0
    """Seconds that the slowest write took that was acknowledged."""
    takeovers: list[float] = field(default_factory=list)
    """Seconds from a fault to a successful write in a context of the kernel concerned."""
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, context: str, token: str) -> None:
        self.acknowledged.setdefault(context, []).append(token)

    def check(self, context: str, text: str) -> None:
        """Assert that a text holds what it must, once, and nothing else."""
        found = Counter(_TOKEN.findall(text))
        assert "".join(found.elements()) and sum(map(len, found.elements())) == len(text), text
        acknowledged = self.acknowledged.get(context, [])
        lost = [one for one in acknowledged if not found[one]]
        assert not lost, f"{context} has lost {lost}"
        twice = [one for one, times in found.items() if times > 1]
        assert not twice, f"{context} has these twice: {twice}"
        strange = found.keys() - set(acknowledged) - self.unknown.get(context, set())
        assert not strange, f"{context} has {strange}, which nobody wrote"


@dataclass
class FaultRun:
    """One run: the cluster, its contexts with one block each, and who writes."""

    cluster: KernelCluster
    database: PostgresServer
    store: str
    choose: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    blocks: dict[str, str] = field(default_factory=dict)
    """The block of each context."""
    is_orderly: bool = True
    """Whether kernels have ended in order only, so that no client sees an error."""
    is_over: bool = False
    _numbers: count[int] = field(default_factory=count)

    async def found(self) -> None:
        """Make the contexts, and the invitation that stock clients use."""
        calls = ToolClient(self.cluster.locate)
        for number in range(CONTEXTS):
            label = f"c{number}"
            await calls.call("context.create", {"label": label})
            made = await calls.call("block.create", {"context": label, "kind": "file"})
            self.blocks[label] = made["block_id"]
        invited = await calls.call("kernel.invite", {"role": "editor"})
        self.cluster.token = invited["token"]
        await calls.close()

    def token(self, who: str) -> str:
        return f"<{who}:{next(self._numbers)}>"

    # Writers

    async def call_tools(self, who: str) -> None:
        """Append by tool calls, to a context after the other, until the run is over."""
        calls = ToolClient(self.cluster.locate, as_name=who)
        while not self.is_over:
            context = self.choose.choice(list(self.blocks))
            token = self.token(who)
            await self._append(calls, context, token)
            await asyncio.sleep(self.choose.uniform(0, PAUSE))
        await calls.close()

    async def _append(self, calls: ToolClient, context: str, token: str) -> bool:
        begun = time.monotonic()
        try:
            params = {"block_id": self.blocks[context], "text": token}
            await calls.call("block.append", params)
        except AntiphonError as error:
            if error.code not in _UNKNOWN or self.is_orderly:
                raise
            self.ledger.unknown.setdefault(context, set()).add(token)
            return False
        self.ledger.slowest = max(self.ledger.slowest, time.monotonic() - begun)
        self.ledger.add(context, token)
        return True

    async def type_in_replica(self, who: str) -> None:
        """Type into replicas; each goes for good once what it wrote has been acknowledged."""
        while not self.is_over:
            context = self.choose.choice(list(self.blocks))
            replica = Replica(self.cluster.locate, context, as_name=who)
            running = asyncio.create_task(replica.run())
            await until(partial(_is_settled, replica))
            for _ in range(self.choose.randrange(1, 12)):
                assert replica.rejection is None, replica.rejection
                token = self.token(who)
                replica.document.append(self.blocks[context], token)
                if self.choose.random() < 0.5:
                    begun = time.monotonic()
                    await replica.saved()
                    self.ledger.slowest = max(self.ledger.slowest, time.monotonic() - begun)
                    self.ledger.add(context, token)
                else:
                    self.ledger.unknown.setdefault(context, set()).add(token)
                await asyncio.sleep(self.choose.uniform(0, PAUSE))
            await replica.saved()
            await replica.close()
            await running

    async def type_in_yjs(self, client: StockClient, context: str, who: str) -> None:
        """Type in a stock client, which keeps what it has until it is sent."""
        while not self.is_over:
            token = self.token(who)
            client.tell(insert=[0, token])
            self.ledger.add(context, token)
            await asyncio.sleep(self.choose.uniform(0.1, 2 * PAUSE))

    # Faults

    async def restart_in_order(self) -> None:
        """Restart one kernel after the other, as an upgrade does."""
        await asyncio.sleep(3)  # until everybody has come, which is no interruption
        self.ledger.slowest = 0.0
        for one in self.cluster.kernels:
            await self._end(one)
            await asyncio.sleep(1)
        logging.getLogger(__name__).warning("the slowest write took %.2f s", self.ledger.slowest)

    async def harm(self) -> None:
        """Restart all in order, then do one harm after the other until the time is over."""
        await self.restart_in_order()
        self.is_orderly = False
        harms: list[Callable[[KernelProcess], Awaitable[None]]] = [
            self._kill, self._kill, self._stop, self._cut_off_database, self._cut_off_peers,
            self._restart_database, self._end,
        ]  # fmt: skip
        end = time.monotonic() + SECONDS
        rest = self.choose.sample(harms, len(harms))
        while (rest or time.monotonic() < end) and not self.is_over:
            rest = rest or self.choose.sample(harms, len(harms))
            harm = rest.pop()
            self.ledger.faults[harm.__name__.strip("_")] += 1
            await harm(self.choose.choice(self.cluster.kernels))
            await asyncio.sleep(self.choose.uniform(0.2, 1.5))

    async def _kill(self, one: KernelProcess) -> None:
        owned = await self._owned_by(one)
        await one.kill()
        await self._measure_takeover(owned)
        await one.start()

    async def _end(self, one: KernelProcess) -> None:
        await one.end()
        await one.start()

    async def _stop(self, one: KernelProcess) -> None:
        owned = await self._owned_by(one)
        one.signal(signal.SIGSTOP)
        begun = time.monotonic()
        await self._measure_takeover(owned)
        await asyncio.sleep(max(0.0, begun + 1.5 * LEASE_SECONDS - time.monotonic()))
        one.signal(signal.SIGCONT)

    async def _cut_off_database(self, one: KernelProcess) -> None:
        ways = self.choose.choice([(True, True), (True, False), (False, True)])
        owned = await self._owned_by(one)
        one.is_stopped = True  # as a balancer that asks after its health sees it
        one.to_database.stop(from_clients=ways[0], to_clients=ways[1])
        await self._measure_takeover(owned)
        one.to_database.go_on()
        one.is_stopped = False

    async def _cut_off_peers(self, one: KernelProcess) -> None:
        ways = self.choose.choice([(True, True), (True, False), (False, True)])
        one.from_peers.stop(from_clients=ways[0], to_clients=ways[1])
        await asyncio.sleep(self.choose.uniform(1, 8))
        one.from_peers.go_on()

    async def _restart_database(self, _: KernelProcess) -> None:
        mode = self.choose.choice(["fast", "immediate"])
        await asyncio.to_thread(self.database.stop, mode)
        await asyncio.to_thread(self.database.start)

    async def _owned_by(self, one: KernelProcess) -> list[str]:
        """Return some of the contexts that a kernel has."""
        sql = (
            "SELECT c.label FROM journal.owners o JOIN journal.contexts c ON c.number = o.context"
            " JOIN journal.kernels k ON k.number = o.kernel WHERE k.address LIKE %s"
        )
        connection = await psycopg.AsyncConnection.connect(self.store)
        async with connection:
            rows = await connection.execute(sql, (f"%:{one.from_peers.port}",))
            labels = [row[0] for row in await rows.fetchall() if row[0] in self.blocks]
        return self.choose.sample(labels, min(4, len(labels)))

    async def _measure_takeover(self, contexts: list[str]) -> None:
        begun = time.monotonic()

        async def probe(context: str) -> None:
            calls = ToolClient(self.cluster.locate, as_name="probe")
            while not await self._append(calls, context, self.token("probe")):
                await asyncio.sleep(0.1 if SECONDS > 60 else 0.4)
            self.ledger.takeovers.append(time.monotonic() - begun)
            await calls.close()

        await asyncio.gather(*map(probe, contexts))

    # The end

    async def play(self, stock: Mapping[str, StockClient]) -> None:
        """Let everybody write while harm is done; what fails fails the run."""
        writers = [
            *(self.call_tools(f"caller{number}") for number in range(CALLERS)),
            *(self.type_in_replica(f"typist{number}") for number in range(REPLICAS)),
            *(self.type_in_yjs(one, context, f"yjs{context}") for context, one in stock.items()),
        ]
        tasks = [asyncio.create_task(one) for one in writers]
        harming = asyncio.create_task(self.harm())
        done, _ = await asyncio.wait({harming, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        self.is_over = True
        # A kernel's start that is cancelled waits for ever for the process that asyncio has killed.
        await asyncio.wait({harming})
        for one in (*done, harming):
            one.result()
        await asyncio.gather(*tasks)

    async def wait_until_same(self, context: str, client: StockClient) -> None:
        """Wait until a stock client shows what the kernels have."""
        calls = ToolClient(self.cluster.locate)
        while True:
            read = await calls.call("block.read", {"block_id": self.blocks[context]})
            if read["content"] == client.last("text"):
                return await calls.close()
            await asyncio.sleep(0.2)

    async def check_texts(self) -> None:
        """Assert that each kernel shows the same, and all that it must."""
        for context, block in self.blocks.items():
            texts = set()
            for one in self.cluster.kernels:
                calls = ToolClient(one.locate)
                texts.add((await calls.call("block.read", {"block_id": block}))["content"])
                await calls.close()
            (text,) = texts
            self.ledger.check(context, text)


def _is_settled(replica: Replica) -> bool:
    return replica.state is ReplicaState.LIVE or replica.rejection is not None


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A server that only these tests use, and stop."""
    programs = binaries()
    if programs is None:
        pytest.skip("Postgres is not installed (Debian: apt install postgresql)")
    server = PostgresServer.create(programs)
    server.start()
    server.create_template()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


async def test_kernels_that_are_killed_stopped_and_cut_off_lose_nothing_acknowledged(
    tmp_path: Path, own_postgres: PostgresServer, modules: Path
) -> None:
    store = own_postgres.url(own_postgres.create_database())
    choose = random.Random(int(os.environ.get("ANTIPHON_SEED", "1")))
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(kernel_cluster(tmp_path, store, 3, choose))
        run = FaultRun(cluster, own_postgres, store, choose)
        await run.found()
        url = f"ws://127.0.0.1:{cluster.balancer.port}/sync"
        stock = {
            context: await stack.enter_async_context(
                stock_client_at(modules, url, cluster.token, context, run.blocks[context])
            )
            for context in list(run.blocks)[:STOCK_CLIENTS]
        }
        await run.play(stock)
        for context, client in stock.items():
            await run.wait_until_same(context, client)
        await run.check_texts()
    takeovers = sorted(run.ledger.takeovers)
    assert run.ledger.acknowledged and run.ledger.faults
    report = f"{dict(run.ledger.faults)}, takeovers {[round(one, 1) for one in takeovers]}"
    logging.getLogger(__name__).warning(report)
    if SECONDS > 60:
        assert takeovers[int(0.95 * (len(takeovers) - 1))] < TAKEOVER_SECONDS, report
