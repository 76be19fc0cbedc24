"""The app in real terminals: long contexts, start, keystrokes, and what streaming costs.

    antiphon bench app [--json] [--cols 120] [--rows 40] [--only-opening] [--blocks N ...]

Figures are medians (p95 in brackets), each beside the same figure of a bare Textual app with one
text area, measured in the same run on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.bench.drawing import measure_frames, measure_history, measure_plain_list
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.filled import filled
from tests.bench.pty_process import PtyProcess
from tests.processes import cpu_seconds, memory_of

BARE: Final = "bare Textual"
COMPOSER: Final = "essage, or !command"
PROSE: Final = "The two of them write in **turn**, one text holds both.".split()
FILLED_BLOCKS: Final = 10_000
FILLER: Final = "Some words of a long document. "
LAST_FILLED: Final = "The last of many blocks"
FIRST_MARK: Final = 0x4E00
"""Keys are distinct CJK characters from here on: each is found in the output by itself."""


class Bench:
    """A scratch project and the commands that run in it."""

    def __init__(self, folder: Path, cols: int, rows: int) -> None:
        self.folder = folder
        self.cols, self.rows = cols, rows
        keep = ("PATH", "HOME", "VIRTUAL_ENV")
        self.env = {name: os.environ[name] for name in keep if name in os.environ}
        self.env |= {"XDG_RUNTIME_DIR": str(folder / "run"), "XDG_STATE_HOME": str(folder / "s")}
        self.env |= {"COLORTERM": "truecolor", "PYTHONPATH": os.pathsep.join(sys.path[1:])}
        (folder / "run").mkdir(mode=0o700)
        (folder / "project").mkdir()

    def open(self, *argv: str) -> PtyProcess:
        return PtyProcess(
            [sys.executable, *argv],
            env=self.env,
            cwd=self.folder / "project",
            cols=self.cols,
            rows=self.rows,
        )

    def demo(self, *options: str) -> PtyProcess:
        return self.open("-m", "antiphon", "demo", *options)

    def join(self) -> PtyProcess:
        return self.open("-m", "antiphon", "join")

    def trust(self, data: str) -> None:
        """Let the app open a data folder that this process has made."""
        trust = [sys.executable, "-m", "antiphon", "trust", data, "--yes"]
        subprocess.run(trust, env=self.env, check=True, capture_output=True)

    def baseline(self) -> PtyProcess:
        return self.open(str(Path(__file__).with_name("baseline_app.py")))

    def recording(self, name: str, words: int, per_second: float) -> Path:
        """A model that writes prose, lists and code at an even pace."""
        events: list[dict[str, object]] = [{"model": "aria"}]
        for number in range(words):
            text = PROSE[number % len(PROSE)] + " "
            if number % 60 == 59:
                text = "\n\n"
            events.append({"at_ms": 1000 / per_second, "type": "text", "text": text})
        events.append({"at_ms": 0, "type": "end"})
        path = self.folder / name
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        return path


def keystrokes(
    writer: PtyProcess, reader: PtyProcess, count: int, gap: float = 0.05, first: int = 0
) -> list[float]:
    """Milliseconds from pressing a key in `writer` to its character on the screen of `reader`."""
    samples = []
    for number in range(count):
        mark = chr(FIRST_MARK + first + number)
        start = len(reader.written)
        pressed = time.perf_counter()
        writer.send(mark)
        seen = reader.wait_for(mark, 10, since=start)
        samples.append((seen - pressed) * 1000)
        for process in {writer, reader}:
            process.drain(gap)
    return samples


def measure_start(bench: Bench, runs: int) -> Iterator[Figure]:
    """From starting the process to a composer that can be typed in, and to a kernel that answers.

    Processor time is that of the app; the kernel that it starts comes up beside it.
    """
    own, bare, live, spent = list[float](), list[float](), list[float](), list[float]()
    for _ in range(runs):
        with bench.demo() as process:
            own.append(process.wait_for(COMPOSER, 30) - process.started)
            spent.append(cpu_seconds(process.pid))
            live.append(process.wait_for("live", 30) - process.started)
        with bench.baseline() as process:
            bare.append(process.wait_for(COMPOSER, 30) - process.started)
    yield figure("start to first frame", "s", own, baseline=bare, against=BARE, budget=0.5)
    yield figure("start to first frame, processor time", "s", spent)
    yield figure("start to a kernel that has answered", "s", live)


def measure_composer(bench: Bench, count: int) -> Iterator[Figure]:
    """Keystrokes in the composer: own screen, and the other terminal's, with nothing else on."""
    quiet = bench.recording("quiet.jsonl", 1, 100)
    with bench.demo("--play", str(quiet)) as own, bench.baseline() as bare:
        own.wait_for(COMPOSER, 30)
        bare.wait_for(COMPOSER, 30)
        own.drain(3)
        mine = keystrokes(own, own, count)
        theirs = keystrokes(bare, bare, count)
        yield figure(
            "keystroke to own screen", "ms", mine, baseline=theirs, against=BARE, budget=20
        )
        with bench.join() as other:
            other.wait_for(COMPOSER, 30)
            other.drain(3)
            samples = keystrokes(own, other, count, first=count)
            yield figure("keystroke to the other terminal, idle", "ms", samples, budget=60)


def measure_streaming(bench: Bench, count: int, seconds: float) -> Iterator[Figure]:
    """One model at 100 tokens a second: what it costs, and what a person's keys still take."""
    stream = bench.recording("stream.jsonl", round(100 * (seconds + 90)), 100)
    data = bench.folder / "streaming"
    with bench.demo("--play", str(stream), "--data", str(data)) as own:
        own.wait_for(COMPOSER, 30)
        own.drain(4)
        kernel = json.loads((data / "kernel.json").read_text())["pid"]
        app, began = cpu_seconds(own.pid), time.perf_counter()
        before = cpu_seconds(kernel)
        own.drain(seconds)
        passed = time.perf_counter() - began
        app_share = (cpu_seconds(own.pid) - app) / passed * 100
        kernel_share = (cpu_seconds(kernel) - before) / passed * 100
        yield figure("CPU of the app at 100 tokens/s", "%", [app_share], budget=30)
        yield figure("CPU of the kernel at 100 tokens/s", "%", [kernel_share], budget=15)
        with bench.join() as other:
            other.wait_for(COMPOSER, 30)
            other.drain(3)
            mine = keystrokes(own, own, count)
            yield figure("keystroke to own screen, streaming", "ms", mine, budget=50)
            theirs = keystrokes(own, other, count, first=count)
            yield figure("keystroke to the other terminal, streaming", "ms", theirs, budget=90)


LONG_CELLS: Final = {
    "1 MB": "A *paragraph* of some words, with `code`, to be read and edited.\n\n" * 16_000,
    "35,000 lines": "".join(f"line {number} of the output\n" for number in range(35_000)),
}
LONGEST_WAIT: Final = 250
"""Milliseconds that no key may wait."""


def answer_time(process: PtyProcess, key: str, quiet: float = 0.3) -> float:
    """Milliseconds from pressing a key to the last of what it changes on the screen."""
    process.drain(quiet)
    written, pressed = len(process.written), time.perf_counter()
    process.send(key)
    last = pressed
    while time.perf_counter() - last < quiet or len(process.written) == written:
        before = len(process.written)
        process.drain(0.005)
        if len(process.written) > before:
            last = time.perf_counter()
        elif time.perf_counter() - pressed > 10:
            break
    return (last - pressed) * 1000


async def fill(folder: Path, *runs: tuple[int, str]) -> str:
    """Make the data of a kernel with so many blocks of each text; return its folder."""
    folder.mkdir()
    async with filled(folder) as kernel:
        for count, text in runs:
            await kernel.add_blocks(count, text)
    return str(folder / "data")


EDIT_KEYS: Final = {
    "fold": " ",
    "open": " ",
    "scroll": "\x1b[6~",
    "enter EDIT": "\r",
    "type in EDIT": "x",
    "leave EDIT": "\x1b",
}


def measure_long_cells(bench: Bench, rounds: int) -> Iterator[Figure]:
    """One very long cell: every key on it is to be answered as on a short one."""
    short = cell_keys(bench, "A short one.\n" * 30, rounds)
    for size, text in LONG_CELLS.items():
        for name, times in cell_keys(bench, text, rounds).items():
            yield figure(
                f"{name}, cell of {size}",
                "ms",
                times,
                baseline=short[name],
                against="a short cell",
                budget=LONGEST_WAIT,
            )


def cell_keys(bench: Bench, text: str, rounds: int) -> dict[str, list[float]]:
    """Answer times of the keys that are pressed on a cell, by what they do."""
    folder = bench.folder / f"cell-{len(text)}"
    data = asyncio.run(fill(folder, (1, "Before."), (1, text), (1, "After it.")))
    bench.trust(data)
    samples: dict[str, list[float]] = {name: [] for name in EDIT_KEYS}
    with bench.open("-m", "antiphon", "--data", data) as own:
        own.wait_for("After it.", 60)
        own.drain(3)
        for key in ("\x1b[A", "k", "g", "j"):
            answer_time(own, key)
        for _ in range(rounds):
            for name, key in EDIT_KEYS.items():
                samples[name].append(answer_time(own, key))
    return samples


def measure_find(bench: Bench, runs: int) -> Iterator[Figure]:
    """Finding a text in 10,000 blocks, in the one that is searched last."""
    blocks = ((1, "the only q of all"), (FILLED_BLOCKS, FILLER * 30), (1, LAST_FILLED))
    data = asyncio.run(fill(bench.folder / "find", *blocks))
    bench.trust(data)
    samples: list[float] = []
    with bench.open("-m", "antiphon", "--data", data) as own:
        own.wait_for(LAST_FILLED, 60)
        own.drain(5)
        own.send("\x06\x1b")  # all cells come
        own.drain(3)
        for _ in range(runs):
            own.send("\x06")  # Ctrl+F
            own.drain(0.3)
            own.send("\x7f")
            own.drain(0.3)
            start, pressed = len(own.written), time.perf_counter()
            own.send("q")
            samples.append((own.wait_for("1 of 1", 10, since=start) - pressed) * 1000)
            own.send("\x1b")
            own.drain(0.5)
    yield figure("first hit in 10,000 blocks", "ms", samples, budget=150)


TEXT: Final = "The quick brown fox jumps over **the** lazy dog. " * 4
FIRST: Final = "Startmark"
LAST: Final = "Endmark"
VISIBLE_BUDGET: Final = 1.5
SETTLED: Final = 11
"""Seconds after which the kernel has given free memory back."""


def stop_kernel(data: Path) -> None:
    """End the kernel of a data folder, if one runs, and wait for that."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = json.loads((data / "kernel.json").read_text())["pid"]
        os.kill(pid, signal.SIGTERM)
        while True:
            time.sleep(0.05)
            os.kill(pid, 0)


def _open(app: PtyProcess, data: Path) -> tuple[float, float, float, float]:
    """Seconds until text is seen and until it is live; megabytes of the app and of the kernel."""
    visible = app.wait_for(LAST, 120) - app.started
    live = app.wait_for("live", 120) - app.started
    app.drain(SETTLED)
    return visible, live, *_memory(app, data)


def _memory(app: PtyProcess, data: Path) -> tuple[float, float]:
    """Megabytes of the app and of the kernel."""
    kernel = json.loads((data / "kernel.json").read_text())["pid"]
    return memory_of(app.pid) / 1e6, memory_of(kernel) / 1e6


def _read_all(app: PtyProcess, data: Path) -> tuple[float, float, float]:
    """Go to the first cell: seconds until it is seen, megabytes of the app and of the kernel."""
    app.send("\x1b")
    app.drain(0.5)
    begun = time.perf_counter()
    app.send("g")
    seen = app.wait_for(FIRST, 120) - begun
    app.drain(3)
    return seen, *_memory(app, data)


def measure_long_contexts(bench: Bench, sizes: Iterable[int], runs: int) -> Iterator[Figure]:
    """Contexts of so many blocks, opened again and again: cold, without a kernel, and warm.

    Each is opened once before, so that a kernel has left there what it leaves at its end.
    """
    for blocks in sizes:
        texts = ((1, FIRST), (blocks - 2, TEXT), (1, LAST))
        data = Path(asyncio.run(fill(bench.folder / f"blocks-{blocks}", *texts)))
        bench.trust(str(data))

        def open_app(data: Path = data) -> PtyProcess:
            return bench.open("-m", "antiphon", "--data", str(data))

        with open_app() as app:
            _open(app, data)
        bare: list[float] = []
        read: list[tuple[float, float, float]] = []
        samples: dict[str, list[tuple[float, float, float, float]]] = {"cold": [], "warm": []}
        for _ in range(runs):
            stop_kernel(data)
            with bench.baseline() as process:
                bare.append(process.wait_for(COMPOSER, 60) - process.started)
            for measured in samples.values():
                with open_app() as app:
                    measured.append(_open(app, data))
            with open_app() as app:
                _open(app, data)
                read.append(_read_all(app, data))
                app.send("G")  # where the next one is to open
                app.drain(1)
        stop_kernel(data)
        yield from _opening_figures(f"{blocks:,} blocks", bare, read, samples)


def _opening_figures(
    name: str,
    bare: Sequence[float],
    read: Sequence[tuple[float, float, float]],
    samples: Mapping[str, Sequence[tuple[float, float, float, float]]],
) -> Iterator[Figure]:
    seconds, memory, of_kernel = zip(*read, strict=True)
    yield figure(f"{name}: first cell seen, when gone to", "s", seconds)
    yield figure(f"{name}: memory of the app, all of them read", "MB", memory)
    yield figure(f"{name}: memory of the kernel, all of them read", "MB", of_kernel)
    for how, measured in samples.items():
        visible, live, app_memory, kernel_memory = zip(*measured, strict=True)
        what, budget = f"{name}, {how}", VISIBLE_BUDGET
        yield figure(
            f"{what}: text visible", "s", visible, baseline=bare, against=BARE, budget=budget
        )
        yield figure(f"{what}: cells can be edited", "s", live)
        yield figure(f"{what}: memory of the app", "MB", app_memory)
        yield figure(f"{what}: memory of the kernel", "MB", kernel_memory)


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="antiphon-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(bench: Bench, options: argparse.Namespace) -> Iterator[Figure]:
    size = (options.cols, options.rows)
    yield from measure_long_contexts(bench, options.blocks, options.opens)
    if options.only_opening:
        return
    yield from measure_start(bench, options.runs)
    yield from measure_composer(bench, options.keys)
    yield from measure_find(bench, options.runs)
    yield from measure_long_cells(bench, options.runs)
    yield measure_frames(*size, options.frames)
    yield from measure_history(*size, options.keys)
    yield from measure_plain_list(*size, options.keys, options.opens)
    yield from measure_streaming(bench, options.keys, options.seconds)


def main() -> None:
    parser = arguments(__doc__)
    numbers = {
        "cols": (120, "of the terminal"),
        "rows": (40, "of the terminal"),
        "keys": (60, "keystrokes per figure"),
        "runs": (7, "starts per figure"),
        "frames": (300, "frames that are drawn"),
        "opens": (3, "openings of a long context"),
    }
    for name, (usual, meaning) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=usual, help=meaning)
    parser.add_argument("--seconds", type=float, default=15, help="of streaming")
    sizes, meaning = [10_000, 50_000, 100_000], "sizes of long contexts"
    parser.add_argument("--blocks", type=int, nargs="*", default=sizes, help=meaning)
    parser.add_argument("--only-opening", action="store_true", help="long contexts only")
    options = parser.parse_args()
    with scratch() as folder:
        bench = Bench(folder, options.cols, options.rows)
        print_figures(measured(bench, options), as_json=options.json)


if __name__ == "__main__":
    main()
