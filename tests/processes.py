"""Memory and processor time of a process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path


def memory_of(pid: int | str = "self") -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def grandchildren_of(pid: int) -> list[int]:
    """Return the processes that the children of a process have started."""
    return [one for child in children_of(pid) for one in children_of(child)]


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or is nothing but an exit code that nobody has taken."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


class Stall:
    """The longest work that the event loop did at a stretch, in processor time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            self.seconds = max(self.seconds, time.thread_time() - before)


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Stall]:
    """Measure the event loop meanwhile, without collecting what other tests have made."""
    gc.collect()
    gc.freeze()
    stall = Stall()
    watching = asyncio.create_task(stall.watch())
    try:
        yield stall
    finally:
        watching.cancel()
