"""Files of a project of 50,000: start, listing, opening, changes from outside, saving, searching.

    antiphon bench files [--json] [--files COUNT]

The project is a repository of git, in folders of 100 files, with some longer ones beside them.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.files import file_contexts
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.filled import Filled, filled

RUNS: Final = 20
LINE: Final = "def value_{}(one: int) -> int:  # a line of usual length in a file of usual text\n"
NEEDLE: Final = "value_7777("
"""Stands once in each file of 10,000 lines, and nowhere else."""


def make_project(folder: Path, count: int) -> None:
    """Write the files and commit them."""
    for number in range(count):
        if number % 100 == 0:
            (folder / f"d{number // 100:04}").mkdir(parents=True)
        place = folder / f"d{number // 100:04}" / f"f{number % 100:02}.py"
        place.write_text("".join(LINE.format(at) for at in range(10)))
    for number in range(RUNS):
        for lines in (1_000, 10_000):
            place = folder / f"lines-{lines}-{number}.py"
            place.write_text("".join(LINE.format(at) for at in range(lines)))
    who = ("-c", "user.name=bench", "-c", "user.email=bench@here", "-c", "gc.auto=0")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        subprocess.run(["git", *who, *command], cwd=folder, check=True)
    (folder / ".git" / "info" / "exclude").write_text("/data\n")


def start_milliseconds(folder: Path) -> float:
    """Return the milliseconds in which a process opens a kernel whose project this is."""
    command = [sys.executable, "-m", "tests.bench.kernel_contexts", "open", str(folder), "0"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, check=True, capture_output=True, cwd=root)
    return float(json.loads(done.stdout)["start"]) * 1e3


def measure_starts(empty: Path, project: Path, count: int) -> Figure:
    """Measure starts in turns; the first of each founds the kernel and does not count."""
    bare, full = [], []
    for number in range(6):
        for folder, took in ((empty, bare), (project, full)):
            started = start_milliseconds(folder)
            if number:
                took.append(started)
    name = f"kernel start in a project of {count} files"
    budget = 1.1 * statistics.median(bare) + 2
    return figure(name, "ms", full, baseline=bare, against="in an empty folder", budget=budget)


async def timed(kernel: Filled, tool: str, **params: Any) -> float:
    """Return the milliseconds of a call."""
    start = time.perf_counter()
    await kernel.call(tool, **params)
    return (time.perf_counter() - start) * 1e3


async def measure_files(project: Path, count: int) -> list[Figure]:
    async with filled(project) as kernel:
        listed = [await timed(kernel, "file.list") for _ in range(5)]
        paths = [f"lines-1000-{number}.py" for number in range(RUNS)]
        opened = [await timed(kernel, "file.open", path=path) for path in paths]
        changed = {
            name: [await change(kernel, project, number, write) for number in range(RUNS)]
            for name, write in (("in place", Path.write_text), ("renamed", renamed))
        }
        saved, bare = [], []
        for path in paths:
            await kernel.call("block.splice", block_id=f"file:{path}", offset=0, insert="x")
            saved.append(await timed(kernel, "file.save", path=path))
            bare.append(bare_save(project / path))
        return [
            # The finder shows its first hits 100 ms after the first key.
            figure(f"file.list in {count} files, first answer", "ms", listed[:1], budget=100),
            figure(f"file.list in {count} files, later ones", "ms", listed[1:], budget=100),
            figure("opening a file of 1,000 lines", "ms", opened, budget=50),
            *(
                figure(f"10 lines of 10,000 changed outside, {name}", "ms", took, budget=100)
                for name, took in changed.items()
            ),
            figure(
                "saving a file of 1,000 lines",
                "ms",
                saved,
                baseline=bare,
                against="write, fsync and rename",
                budget=50,
            ),
            *[one async for one in measure_search(kernel, project, count)],
        ]


def renamed(place: Path, text: str) -> object:
    beside = place.with_suffix(".new")
    beside.write_text(text)
    return beside.rename(place)


async def change(
    kernel: Filled, project: Path, number: int, write: Callable[[Path, str], object]
) -> float:
    """Return the milliseconds until a block has what another program has written."""
    place = project / f"lines-10000-{number}.py"
    file = await kernel.kernel.files.open(place.name)
    await asyncio.sleep(0.05)  # its folder is watched
    lines = file.now().text.splitlines(keepends=True)
    for at in range(10):
        lines[at * 1_000 + 7] = f"# {write.__name__} {number}\n"
    text = "".join(lines)
    changed = asyncio.Event()
    stop = file.context.applied.listen(lambda _: changed.set())
    start = time.perf_counter()
    write(place, text)
    while file.now().text != text:
        await asyncio.wait_for(changed.wait(), 10)
        changed.clear()
    took = (time.perf_counter() - start) * 1e3
    stop()
    return took


def bare_save(place: Path) -> float:
    """Return the milliseconds of replacing a file safely, and nothing else."""
    data = place.read_bytes()
    start = time.perf_counter()
    beside = place.with_suffix(".new")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(place)
    folder = os.open(place.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return (time.perf_counter() - start) * 1e3


async def measure_search(kernel: Filled, project: Path, count: int) -> AsyncIterator[Figure]:
    """Measure the search beside the programs that people know, in turns."""
    commands = {"git grep": ["git", "grep", "-nF", NEEDLE], "rg": ["rg", "-nF", NEEDLE]}
    took: dict[str, list[float]] = {}
    for _ in range(5):
        if "file.search" in kernel.kernel.registry.names:
            searched = await timed(kernel, "file.search", query=NEEDLE)
            took.setdefault("file.search", []).append(searched)
        for name, command in commands.items():
            if shutil.which(command[0]) is not None:
                start = time.perf_counter()
                subprocess.run(command, cwd=project, stdout=subprocess.DEVNULL, check=True)
                took.setdefault(name, []).append((time.perf_counter() - start) * 1e3)
    ours = took.pop("file.search", None)
    for name, others in took.items():
        if ours is None:
            yield figure(f"{name} in {count} files", "ms", others)
        else:
            yield figure(f"file.search in {count} files", "ms", ours, baseline=others, against=name)


def measure(folder: Path, count: int) -> Iterator[Figure]:
    project, empty = folder / "project", folder / "empty"
    empty.mkdir()
    make_project(project, count)
    yield measure_starts(empty, project, count)
    yield from asyncio.run(measure_files(project, count))


def main() -> None:
    """Measure everything and print it."""
    parser = arguments(__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    options = parser.parse_args()
    file_contexts.AUTOSAVE_SECONDS = 1e6  # type: ignore[misc]
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as name:
        print_figures(measure(Path(name), options.files), as_json=options.json)


if __name__ == "__main__":
    main()
