"""The app in real terminals: start, keystrokes, and what streaming costs.

    antiphon bench app [--json] [--cols 120] [--rows 40]

Figures are medians (p95 in brackets), each beside the same figure of a bare Textual app with one
text area, measured in the same run on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.figures import Figure, figure, print_figure
from tests.bench.pty_process import PtyProcess
from tests.processes import cpu_seconds

BARE: Final = "bare Textual"
COMPOSER: Final = "essage, or !command"
PROSE: Final = (
    "The",
    "two",
    "of",
    "them",
    "write",
    "in",
    "**turn**,",
    "one",
    "text",
    "holds",
    "both.",
)
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


def measure_start(bench: Bench, runs: int) -> Figure:
    """From starting the process to a shell with a live composer."""

    def once(opened: Callable[[], PtyProcess], mark: str) -> float:
        with opened() as process:
            return process.wait_for(mark, 30) - process.started

    own = [once(bench.demo, COMPOSER) for _ in range(runs)]
    bare = [once(bench.baseline, COMPOSER) for _ in range(runs)]
    return figure("start to first frame", "s", own, baseline=bare, against=BARE, budget=0.9)


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


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="antiphon-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object a figure")
    parser.add_argument("--cols", type=int, default=120)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--keys", type=int, default=60, help="keystrokes per figure")
    parser.add_argument("--runs", type=int, default=7, help="starts per figure")
    parser.add_argument("--seconds", type=float, default=15, help="of streaming")
    options = parser.parse_args()
    with scratch() as folder:
        bench = Bench(folder, options.cols, options.rows)
        print_figure(measure_start(bench, options.runs), as_json=options.json)
        for one in measure_composer(bench, options.keys):
            print_figure(one, as_json=options.json)
        for one in measure_streaming(bench, options.keys, options.seconds):
            print_figure(one, as_json=options.json)


if __name__ == "__main__":
    main()
