"""Data folders of kernels that have just been founded: copying one is faster than founding it."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from tests.clocks import ManualClock


def copy_founded(data: Path) -> None:
    """Make the data folder of a kernel of amy's, of the same id in each test, if there is none."""
    if not data.exists():
        shutil.copytree(_founded(), data)


@cache
def _founded() -> Path:
    data = Path(tempfile.mkdtemp(prefix="antiphon-founded-"))
    atexit.register(shutil.rmtree, data, ignore_errors=True)
    with ThreadPoolExecutor(1) as apart:  # from the event loop of a test
        apart.submit(asyncio.run, _found(data)).result()
    return data


async def _found(data: Path) -> None:
    registry = Registry(())
    kernel = await Kernel.open(data, data, registry=registry, owner="amy", clock=ManualClock())
    await kernel.close()
