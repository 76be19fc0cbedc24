"""One writer and many readers on our kernel and on the servers of others, with a neutral client.

The client is the same for all of them: node's `ws` and yjs, see load.mjs. Each load is given to one
server after the other in every run, so that what the machine does meanwhile concerns all of them.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.figures import Figure, figure

FOLDER: Final = Path(__file__).parent
PACKAGES: Final = (
    "@hocuspocus/server@4.7.0",
    "@hocuspocus/extension-sqlite@4.7.0",
    "@y/websocket-server@0.1.1",
    "yjs@13.6.27",
    "ws@8.18.3",
)
OURS: Final = "antiphon"
STORING: Final = "hocuspocus with SQLite"
OTHERS: Final = ("hocuspocus", STORING, "y-websocket-server")
BARE: Final = "a bare server"
"""A server that only commits and sends, in the place of any that does more; see bare_server.py."""
_OVER_BARE: Final = 1.75
"""How much of its processor time an update may take at 10 a second: see docs/benchmarks.md."""


@contextmanager
def serving(*command: str) -> Iterator[tuple[dict[str, Any], int]]:
    """A server's process: what it says in its first line, and its id."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=FOLDER.parents[2]
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield json.loads(process.stdout.readline()), process.pid
    finally:
        process.stdin.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()


@contextmanager
def serving_antiphon(folder: Path, rooms: int) -> Iterator[tuple[dict[str, Any], int]]:
    """A kernel in a process of its own, with so many contexts of one block."""
    folder.mkdir()
    module = "tests.bench.fanout.antiphon_server"
    with serving(sys.executable, "-m", module, str(folder), str(rooms)) as served:
        yield served


@dataclass(frozen=True, slots=True)
class Load:
    """One thing that the writer does."""

    kind: str
    """append (20 characters), keystroke (at the end) or random (a keystroke anywhere)."""
    readers: int
    window: int = 100
    """How many updates may be under way; with 1, each waits for the one before."""
    per_second: int = 0
    """A steady pace in the place of a window."""

    @property
    def is_costed(self) -> bool:
        """Return whether processor time is what counts, not latency."""
        return bool(self.per_second) and self.readers == 10

    def name(self) -> str:
        """Return the name of a figure of this load."""
        what = {
            "append": "20-character appends",
            "keystroke": "keystrokes in a row",
            "random": "keystrokes at random places",
        }[self.kind]
        if self.window == 1:
            what = "keystrokes one at a time"
        pace = f", {self.per_second}/s" if self.per_second else ""
        return f"{what}{pace}, {self.readers} readers"


@dataclass(frozen=True, slots=True)
class Result:
    """Results of one load."""

    rate: float
    """Updates that all readers have got in a second."""
    cpu: float
    """Microseconds that the server's threads have run for each."""
    p50: float
    """Milliseconds from sending to arrival, at a steady pace and one at a time."""
    p95: float


class Room:
    """A document on a server, empty so far."""

    def __init__(self, url: str, server: int, *, block: str = "", name: str = "") -> None:
        """`name`: of a hocuspocus room, which it puts before each frame."""
        self._request = {
            "url": url,
            "server": server,
            "block": block,
            "room": name,
            "hocuspocus": bool(name),
        }

    def run(self, modules: Path, load: Load, seconds: float) -> Result:
        """Put a load on it.

        Raises:
            RuntimeError: if an update did not arrive.
        """
        request = {
            **self._request,
            "modules": str(modules),
            "kind": load.kind,
            "readers": load.readers,
            "window": load.window,
            "perSecond": load.per_second,
            "seconds": seconds,
        }
        command = ["node", str(FOLDER / "load.mjs"), json.dumps(request)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise RuntimeError(f"{load.name()} on {request['url']}: {done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout)
        sent, arrived = answer["sent"], answer["arrived"]
        if arrived < sent:
            raise RuntimeError(f"{arrived} of {sent} updates arrived from {request['url']}")
        cpu = answer["cpuMicroseconds"] / sent
        return Result(arrived / answer["seconds"], cpu, answer["p50"], answer["p95"])


@contextmanager
def rooms_of(name: str, modules: Path, folder: Path, count: int) -> Iterator[Sequence[Room]]:
    """So many documents on one of the servers, in a process of its own."""
    if name == OURS:
        with serving_antiphon(folder, count) as (said, process):
            url = f"ws://127.0.0.1:{said['port']}/sync"
            yield [
                Room(f"{url}/{label}?token={said['token']}", process, block=block)
                for label, block in said["rooms"]
            ]
        return
    if name == BARE:
        module = "tests.bench.fanout.bare_server"
        database = str(folder.with_suffix(".sqlite"))
        with serving(sys.executable, "-m", module, database) as (said, process):
            url = f"ws://127.0.0.1:{said['port']}"
            yield [Room(f"{url}/room-{number}", process) for number in range(count)]
        return
    is_hocuspocus = name.startswith("hocuspocus")
    script = FOLDER / ("hocuspocus.mjs" if is_hocuspocus else "y_websocket.mjs")
    saved = [str(folder.with_suffix(".sqlite"))] if name == STORING else []
    with serving("node", str(script), str(modules), *saved) as (said, process):
        names = [f"room-{number}" for number in range(count)]
        url = f"ws://127.0.0.1:{said['port']}"
        yield [Room(f"{url}/{one}", process, name=one if is_hocuspocus else "") for one in names]


def loads(readers: Sequence[int]) -> list[Load]:
    """Everything that is measured."""
    return [
        *(Load("keystroke", number, window=1) for number in readers),
        *(Load("append", 10, per_second=pace) for pace in (10, 100, 1_000)),
        Load("append", 50, per_second=50),
        Load("append", 50, per_second=100),
        *(Load(kind, number) for kind in ("random", "keystroke", "append") for number in readers),
    ]


def commit_milliseconds(path: Path, commits: int) -> list[float]:
    """Measure the commit of one small row by bare SQLite."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE ops (number INTEGER PRIMARY KEY, data BLOB)")
    took = []
    for number in range(commits):
        start = time.perf_counter()
        connection.execute("INSERT INTO ops VALUES (?, ?)", (number, b"x" * 60))
        took.append((time.perf_counter() - start) * 1e3)
    connection.close()
    return took


def compare(folder: Path, modules: Path, runs: int, *, quick: bool) -> Iterator[Figure]:
    """Measure every server with every load; `quick`: shortly, and with 10 readers at most."""
    # Longer, and what is measured is how much the kernel lets one connection send.
    seconds = 0.5 if quick else 1.0
    wanted = loads((10,) if quick else (10, 50, 200))
    results: dict[tuple[str, Load], list[Result]] = {}
    commits: list[float] = []
    for run in range(runs):
        commits += commit_milliseconds(folder / f"bare-{run}.sqlite", 200)
        for name in (OURS, *OTHERS, BARE):
            place = folder / f"{name.replace(' ', '-')}-{run}"
            with rooms_of(name, modules, place, len(wanted)) as rooms:
                for load, room in zip(wanted, rooms, strict=True):
                    if name == BARE and not (load.is_costed and load.per_second <= 100):
                        continue
                    # A figure from ten a second needs some dozens of them.
                    length = 4.0 if load.per_second == 10 else seconds
                    result = room.run(modules, load, length)
                    results.setdefault((name, load), []).append(result)
    yield figure("bare SQLite commit, synchronous FULL", "ms", commits)
    for load in wanted:
        names = (OURS, *OTHERS, BARE)
        of = {name: results[name, load] for name in names if (name, load) in results}
        yield from _figures(load, of, statistics.median(commits))


def _figures(
    load: Load, results: Mapping[str, Sequence[Result]], commit: float
) -> Iterator[Figure]:
    if load.window == 1:
        yield from _against(f"{load.name()}, p50", "ms", results, "p50", budget=commit + 0.5)
    elif not load.per_second:
        least = 0.9 if load.kind == "append" else None
        yield from _against(load.name(), "/s", results, "rate", of_hocuspocus=least)
    elif load.is_costed:
        budget = 150.0 if load.per_second == 1_000 else None
        if load.per_second == 10:
            bare = statistics.median(one.cpu for one in results[BARE])
            budget = _OVER_BARE * bare
        name = f"processor time of an update at {load.per_second}/s, {load.readers} readers"
        yield from _against(name, "us", results, "cpu", budget=budget)
    else:
        for of, budget in (("p50", None), ("p95", 8.0)):
            name = f"latency at {load.per_second} updates/s, {load.readers} readers, {of}"
            yield from _against(name, "ms", results, of, budget=budget)


def _against(
    name: str,
    unit: str,
    results: Mapping[str, Sequence[Result]],
    field: str,
    *,
    budget: float | None = None,
    of_hocuspocus: float | None = None,
) -> Iterator[Figure]:
    """Yield our figure beside that of each other server, at least so many times hocuspocus's."""
    for other in [name for name in results if name != OURS]:
        yield figure(
            name,
            unit,
            [getattr(one, field) for one in results[OURS]],
            baseline=[getattr(one, field) for one in results[other]],
            against=other,
            budget=budget,
            at_least=of_hocuspocus if other == "hocuspocus" else None,
        )
