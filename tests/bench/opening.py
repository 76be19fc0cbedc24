"""Opening of long contexts: when text is seen, when it can be edited, and what memory it takes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench.figures import Figure, figure
from tests.bench.filled import filled
from tests.bench.pty_process import PtyProcess
from tests.processes import memory_of

TEXT: Final = "The quick brown fox jumps over **the** lazy dog. " * 4
LAST: Final = "Endmark"
VISIBLE_BUDGET: Final = 1.5


async def fill(folder: Path, blocks: int) -> None:
    """Write a context of so many blocks and close it."""
    folder.mkdir(parents=True)
    async with filled(folder) as kernel:
        await kernel.add_blocks(blocks - 1, TEXT)
        await kernel.add_blocks(1, LAST)


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
    app.drain(3)
    kernel = json.loads((data / "kernel.json").read_text())["pid"]
    return visible, live, memory_of(app.pid) / 1e6, memory_of(kernel) / 1e6


def measure_opening(
    open_app: Iterator[PtyProcess], data: Path, blocks: int, runs: int
) -> Iterator[Figure]:
    """Open a context again and again, with and without a kernel that has it open already."""
    cold, warm = [], []
    for _ in range(runs):
        stop_kernel(data)
        for samples in (cold, warm):
            with next(open_app) as app:
                samples.append(_open(app, data))
    stop_kernel(data)
    name = f"{blocks:,} blocks: "
    for how, samples in (("cold", cold), ("warm", warm)):
        visible, live, app_memory, kernel_memory = zip(*samples, strict=True)
        yield figure(f"{name}text visible, {how}", "s", visible, budget=VISIBLE_BUDGET)
        yield figure(f"{name}all of it here, {how}", "s", live)
        yield figure(f"{name}memory of the app, {how}", "MB", app_memory)
        yield figure(f"{name}memory of the kernel, {how}", "MB", kernel_memory)


def fill_now(folder: Path, blocks: int) -> None:
    """Do `fill` outside of an event loop."""
    asyncio.run(fill(folder, blocks))
