"""Opening of long contexts: when text is seen, when it can be edited, and what memory it takes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.bench.figures import Figure, figure
from tests.bench.pty_process import PtyProcess
from tests.processes import memory_of

TEXT: Final = "The quick brown fox jumps over **the** lazy dog. " * 4
FIRST: Final = "Startmark"
LAST: Final = "Endmark"
VISIBLE_BUDGET: Final = 1.5
SETTLED: Final = 11
"""Seconds after which the kernel has given free memory back."""


def stop_kernel(data: Path) -> None:
    """End the kernel of a data folder, if one runs, and wait for that."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
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


def measure_opening(
    open_app: Callable[[Path], PtyProcess],
    start_bare: Callable[[], float],
    data: Path,
    blocks: int,
    runs: int,
) -> Iterator[Figure]:
    """Open a context again and again, with and without a kernel that has it open already.

    It is opened once before, so that a kernel has left there what it leaves at its end.

    Args:
        start_bare: starts an app that has nothing to open; the seconds until its first frame.
    """
    bare: list[float] = []
    read: list[tuple[float, float, float]] = []
    samples: dict[str, list[tuple[float, float, float, float]]] = {"cold": [], "warm": []}
    with open_app(data) as app:
        _open(app, data)
    for _ in range(runs):
        stop_kernel(data)
        bare.append(start_bare())
        for measured in samples.values():
            with open_app(data) as app:
                measured.append(_open(app, data))
        with open_app(data) as app:
            _open(app, data)
            read.append(_read_all(app, data))
            app.send("G")  # where the next one is to open
            app.drain(1)
    stop_kernel(data)
    seconds, memory, of_kernel = zip(*read, strict=True)
    yield figure(f"{blocks:,} blocks: first cell seen, when gone to", "s", seconds)
    yield figure(f"{blocks:,} blocks: memory of the app, all of them read", "MB", memory)
    yield figure(f"{blocks:,} blocks: memory of the kernel, all of them read", "MB", of_kernel)
    for how, measured in samples.items():
        visible, live, app_memory, kernel_memory = zip(*measured, strict=True)
        name = f"{blocks:,} blocks, {how}: "
        yield figure(
            f"{name}text visible",
            "s",
            visible,
            baseline=bare,
            against="bare Textual",
            budget=VISIBLE_BUDGET,
        )
        yield figure(f"{name}cells can be edited", "s", live)
        yield figure(f"{name}memory of the app", "MB", app_memory)
        yield figure(f"{name}memory of the kernel", "MB", kernel_memory)
