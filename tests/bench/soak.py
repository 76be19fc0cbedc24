"""Memory, descriptors and latency over time: four writers, three apps, joins and leaves.

    antiphon bench soak [--json] [--minutes 30]

In the first half the writers stream as models do; in the second they are silent and everything else
goes on. What grows with the text grows in the first half only, a leak in both.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from tests.bench.app import COMPOSER, FIRST_MARK, Bench, scratch
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.pty_process import PtyProcess
from tests.processes import memory_of

WRITERS: Final = 4
RATE: Final = 50
"""Words that each writer appends in a second."""
BLOCK: Final = 400
"""Words of a block."""
STAY: Final = 10.0
"""Seconds for which the app that comes and goes is there, and gone."""
SAMPLES: Final = 10
"""Looks at the processes in each half."""
KEYS: Final = 10
SEEN_WITHIN: Final = 10.0
"""Seconds after which a key counts as not seen."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a process."""

    minute: float
    memory: float
    """Resident megabytes."""
    files: int


@dataclass(frozen=True, slots=True)
class Half:
    """Measurements while the writers wrote, or while they were silent."""

    name: str
    kernel: Sequence[Sample]
    app: Sequence[Sample]
    latencies: Sequence[float]
    """Milliseconds from a key to its character on the same screen."""
    journal: float
    """Megabytes that the journal has grown by."""
    unseen: int
    """Keys that did not get to the screen in time."""


class Writers:
    """Blocks that grow as fast as those of models do, several at a time."""

    def __init__(self, data: Path) -> None:
        self._address = KernelAddress.model_validate_json((data / "kernel.json").read_text())
        self._on = asyncio.Event()
        self._on.set()

    def stop(self) -> None:
        """Finish the blocks that are being written, and begin no other."""
        self._on.clear()

    async def run(self) -> None:
        """Write until cancelled."""
        await asyncio.gather(*(self._write() for _ in range(WRITERS)))

    async def _write(self) -> None:
        calls = ToolClient(lambda: self._address)
        try:
            while True:
                await self._on.wait()
                made = await calls.call("block.create", {"kind": "file", "status": "pending"})
                block = made["block_id"]
                for number in range(BLOCK):
                    text = "\n\n" if number % 60 == 59 else "word "
                    params = {"block_id": block, "text": text, "stream": True}
                    await calls.call("block.append", params)
                    await asyncio.sleep(1 / RATE)
                    if not self._on.is_set():
                        break
                await calls.call("block.status", {"block_id": block, "status": "done"})
        finally:
            await calls.close()


class People:
    """Apps on terminals of their own: one that is measured, one beside it, one that visits."""

    def __init__(self, bench: Bench, own: PtyProcess) -> None:
        self._bench = bench
        self._own = own
        own.wait_for(COMPOSER, 60)
        own.drain(4)  # until its kernel can be found
        self._other = bench.join()
        self._visitor: PtyProcess | None = None
        self._changes_at = 0.0
        self._typed = 0
        self.unseen = 0
        """Keys that were not on the screen in time."""
        self._other.wait_for(COMPOSER, 60)

    def work(self, seconds: float) -> None:
        """Type in turns for so long, and let the visitor come or go when it is time."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if time.perf_counter() >= self._changes_at:
                self._visit()
            self._key(self._other, "x")
            self._own.drain(0.2)

    def latency(self) -> float:
        """Type one character and wait until it is on the screen; milliseconds."""
        self._typed += 1
        mark = chr(FIRST_MARK + self._typed % 5_000)
        self._own.forget()
        start = time.perf_counter()
        self._own.send(mark)
        try:
            seen = self._own.wait_for(mark, SEEN_WITHIN)
        except TimeoutError:
            self.unseen += 1
            seen = time.perf_counter()
        self._own.send("\x7f")
        self._own.drain(0.1)
        self._own.forget()
        return (seen - start) * 1e3

    def close(self) -> None:
        """End the apps that this has started."""
        for process in (self._other, self._visitor):
            if process is not None:
                process.close()

    def _key(self, process: PtyProcess, key: str) -> None:
        process.send(key)
        process.drain(0.1)
        process.send("\x7f")
        process.drain(0.1)
        process.forget()

    def _visit(self) -> None:
        self._changes_at = time.perf_counter() + STAY
        if self._visitor is None:
            self._visitor = self._bench.join()
        else:
            self._visitor.drain(0.1)
            self._visitor.close()
            self._visitor = None


def look(process: int, since: float) -> Sample:
    """Look at a process now."""
    files = len(list(Path(f"/proc/{process}/fd").iterdir()))
    return Sample((time.perf_counter() - since) / 60, memory_of(process) / 2**20, files)


def stored(data: Path) -> int:
    """Return the bytes of a kernel's databases."""
    return sum(one.stat().st_size for one in data.glob("*.db*"))


async def half(
    name: str, people: People, pids: tuple[int, int], data: Path, seconds: float
) -> Half:
    """Let everybody work and look at the processes meanwhile."""
    start, size = time.perf_counter(), stored(data)
    kernel: list[Sample] = []
    app: list[Sample] = []
    latencies: list[float] = []
    for _ in range(SAMPLES):
        await asyncio.to_thread(people.work, seconds / SAMPLES)
        for _ in range(KEYS):
            latencies.append(await asyncio.to_thread(people.latency))
        kernel.append(look(pids[0], start))
        app.append(look(pids[1], start))
        line = f"{name}: kernel {kernel[-1]}, app {app[-1]}, key {median(latencies[-KEYS:]):.1f} ms"
        print(line, file=sys.stderr, flush=True)
    grown = (stored(data) - size) / 2**20
    return Half(name, kernel, app, latencies, grown, people.unseen)


async def soak(folder: Path, minutes: float) -> list[Half]:
    """Run both halves."""
    bench = Bench(folder, 120, 40)
    data = folder / "data"
    quiet = bench.recording("quiet.jsonl", 1, 100)
    with bench.demo("--play", str(quiet), "--data", str(data)) as own:
        people = await asyncio.to_thread(People, bench, own)
        writers = Writers(data)
        writing = asyncio.create_task(writers.run())
        pids = (int(json.loads((data / "kernel.json").read_text())["pid"]), own.pid)
        try:
            first = await half("text", people, pids, data, minutes * 30)
            writers.stop()
            second = await half("no text", people, pids, data, minutes * 30)
        finally:
            writing.cancel()
            people.close()
            with suppress(asyncio.CancelledError):
                await writing
    return [first, second]


def figures_of(halves: Sequence[Half]) -> Iterator[Figure]:
    """Return how much grew in each half, behind its first look."""
    for one in halves:
        for whose, samples in (("kernel", one.kernel), ("app", one.app)):
            first, last = samples[0], samples[-1]
            grown = (last.memory - first.memory) / (last.minute - first.minute)
            budget = 1.0 if one is halves[-1] else None
            name = f"growth of the {whose}, {one.name}"
            yield figure(name, "MB/min", [grown], budget=budget)
            files = [float(last.files)]
            against, budget = "at the beginning", first.files + 4
            name = f"descriptors of the {whose}, {one.name}"
            yield figure(name, "", files, baseline=[first.files], against=against, budget=budget)
        yield figure(f"growth of the journal, {one.name}", "MB", [one.journal])
        third = len(one.latencies) // 3
        yield figure(
            f"keystroke to own screen at the end, {one.name}",
            "ms",
            one.latencies[-third:],
            baseline=one.latencies[:third],
            against="at the beginning",
        )
    unseen = float(halves[-1].unseen)
    yield figure(f"keys not on the screen within {SEEN_WITHIN:g} s", "", [unseen], budget=0)
    yield figure("memory of the kernel at the end", "MB", [halves[-1].kernel[-1].memory])
    yield figure("memory of the app at the end", "MB", [halves[-1].app[-1].memory])


def main() -> None:
    """Run for so long and print what has grown."""
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    with scratch() as folder:
        figures = figures_of(asyncio.run(soak(folder, options.minutes)))
        print_figures(figures, as_json=options.json)


if __name__ == "__main__":
    main()
