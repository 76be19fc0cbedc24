"""A journal in SQLite and in Postgres: commits, a long context that is opened, and kernels.

    antiphon bench store [--json] [--quick]

Both write to the disk of the folder for temporary files. Postgres is used directly and through a
relay that adds 2 ms to each round trip.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Final

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.storage import JOURNAL_FILE, BlockRow, ContextRow, Journal
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.filled import filled
from tests.bench.store_kernels import measure_kernels
from tests.kernel.served import CuttableProxy
from tests.kernel.storage.commits import AMY, UNDO, commit, found
from tests.postgres import PostgresServer, binaries

EACH_WAY: Final = 0.0005
"""Seconds that the relay is told to wait: the event loop makes whole milliseconds of them."""
MANY: Final = 50
BLOCKS: Final = 10_000
SQLITE, POSTGRES, FAR = "SQLite", "Postgres", "Postgres 2 ms away"


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A server that waits for its disk, as it does by itself."""
    programs = binaries()
    if programs is None:
        raise SystemExit("Postgres is not installed (Debian: apt install postgresql)")
    server = PostgresServer.create(programs, Path(tempfile.gettempdir()))
    server.start(fsync="on", full_page_writes="on", shared_buffers="256MB")
    try:
        server.create_template()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder)


@asynccontextmanager
async def relayed(server: PostgresServer, database: str) -> AsyncIterator[str]:
    """The URL of a database that is some way off."""
    command = (sys.executable, "-m", "tests.bench.store", "--relay", str(server.port))
    # In a process of its own: what it does is no part of what is measured.
    relay = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert relay.stdout is not None
    port = int(await relay.stdout.readline())
    yield server.url(database).replace(f":{server.port}/", f":{port}/")
    relay.kill()
    await relay.wait()


async def run_relay(port: int) -> None:
    """Relay to this port until the process is killed; the relay's own port is printed."""
    relay = CuttableProxy(port, EACH_WAY)
    await relay.start()
    print(relay.port, flush=True)
    await asyncio.Event().wait()


# Commits


@dataclass(slots=True)
class Written:
    """Work of writers in some seconds."""

    latencies: list[float] = field(default_factory=list)
    """Of each commit, in milliseconds."""
    rate: float = 0
    """Commits a second."""


async def write(place: Path | str, contexts: int, seconds: float) -> Written:
    """Let each context commit a keystroke as soon as the one before is on disk."""
    journal = await Journal.open(place)
    await journal.principals()
    if not await journal.principals():
        await journal.add_principal(AMY, 1)
    await journal.reserve_contexts(contexts)
    new = [found(journal, f"{time.time_ns()}") for _ in range(contexts)]
    await asyncio.gather(*(journal.commit(first) for _, first in new))
    written = Written()
    start = time.perf_counter()

    async def type_in(row: ContextRow) -> None:
        seq = 1
        while (before := time.perf_counter()) < start + seconds:
            seq += 1
            block = BlockRow(1, f"block of {row.number}", seq)
            undo = UNDO._replace(place=seq)
            typed = commit(row, seq, blocks=(block,), undo=(undo,), update=b"x" * 40)
            await journal.commit(typed)
            written.latencies.append((time.perf_counter() - before) * 1e3)

    await asyncio.gather(*(type_in(row) for row, _ in new))
    written.rate = len(written.latencies) / (time.perf_counter() - start)
    await journal.close()
    return written


async def write_everywhere(
    folder: Path, server: PostgresServer, contexts: int, runs: int
) -> Mapping[str, list[Written]]:
    database = await asyncio.to_thread(server.create_database)
    done: dict[str, list[Written]] = {SQLITE: [], POSTGRES: [], FAR: []}
    async with relayed(server, database) as far:
        places: dict[str, Path | str] = {
            SQLITE: folder / JOURNAL_FILE,
            POSTGRES: server.url(database),
            FAR: far,
        }
        for _ in range(runs):
            for name, place in places.items():
                done[name].append(await write(place, contexts, 2.0))
    return done


async def query_milliseconds(server: PostgresServer) -> tuple[list[float], list[float]]:
    """Return how long the shortest query takes directly and through the relay."""
    database = await asyncio.to_thread(server.create_database)
    took = list[list[float]]()
    async with relayed(server, database) as far:
        for url in (server.url(database), far):
            journal = await Journal.open(url)
            took.append([])
            for _ in range(100):
                before = time.perf_counter()
                await journal.settings()
                took[-1].append((time.perf_counter() - before) * 1e3)
            await journal.close()
    return took[0], took[1]


def measure_commits(folder: Path, server: PostgresServer, runs: int) -> Iterator[Figure]:
    for contexts, crowd in ((1, "one context"), (MANY, f"{MANY} contexts")):
        done = asyncio.run(write_everywhere(folder, server, contexts, runs))
        latencies = {name: [*chain(*(one.latencies for one in done[name]))] for name in done}
        rates = {name: [one.rate for one in done[name]] for name in done}
        least = 0.5 if contexts == MANY else None
        yield figure(f"commit, {crowd}, {SQLITE}", "ms", latencies[SQLITE])
        for name in (POSTGRES, FAR):
            title, usual = f"commit, {crowd}, {name}", latencies[SQLITE]
            yield figure(title, "ms", latencies[name], baseline=usual, against=SQLITE)
        yield figure(f"updates, {crowd}, {SQLITE}", "/s", rates[SQLITE])
        for name in (POSTGRES, FAR):
            title, usual = f"updates, {crowd}, {name}", rates[SQLITE]
            compared = figure(title, "/s", rates[name], baseline=usual, against=SQLITE)
            yield replace(compared, at_least=least)


# Opening


async def opening(folder: Path, store: str | None, runs: int) -> list[float]:
    """Milliseconds of opening a long context, each time in a kernel that has just started."""
    async with filled(folder, store) as full:
        await full.add_blocks(BLOCKS, "x" * 200)
    took = []
    for _ in range(runs):
        kernel = await Kernel.open(folder / "data", folder, registry=Registry(()), store=store)
        start = time.perf_counter()
        await kernel.context()
        took.append((time.perf_counter() - start) * 1e3)
        await kernel.close()
    return took


async def open_everywhere(folder: Path, server: PostgresServer, runs: int) -> list[Figure]:
    database = await asyncio.to_thread(server.create_database)
    sqlite = await opening(folder / SQLITE, None, runs)
    async with relayed(server, database) as far:
        times = await opening(folder / POSTGRES, far, runs)
    what = f"opening a context of {BLOCKS:,} blocks"
    return [
        figure(f"{what}, {SQLITE}", "ms", sqlite),
        figure(f"{what}, {FAR}", "ms", times, baseline=sqlite, against=SQLITE, budget=600),
    ]


def measure(*, quick: bool) -> Iterator[Figure]:
    runs = 1 if quick else 5
    with running_server() as server, tempfile.TemporaryDirectory() as folder:
        near, away = asyncio.run(query_milliseconds(server))
        yield figure(f"a query, {FAR}", "ms", away, baseline=near, against=POSTGRES)
        yield from measure_commits(Path(folder), server, runs)
        yield from asyncio.run(open_everywhere(Path(folder), server, runs))
        yield from asyncio.run(measure_kernels(Path(folder), server, 3.0 * runs))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="once each")
    parser.add_argument("--relay", type=int, help="only relay to this port of a server")
    chosen = parser.parse_args()
    if chosen.relay:
        asyncio.run(run_relay(chosen.relay))
        return
    logging.getLogger("antiphon_kernel").setLevel(logging.ERROR)
    print_figures(measure(quick=chosen.quick), as_json=chosen.json)


if __name__ == "__main__":
    main()
