"""Whether the machine notices that the kernel is broken."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.invariants.machine import Machine
from tests.kernel.invariants.oracle import Violation

SEEDS = 40
"""A fault that so many cases do not notice is not noticed."""

Fault = Callable[[pytest.MonkeyPatch], None]
"""Breaks the kernel until the patch is undone."""


async def is_noticed(folder: Path) -> bool:
    """Whether one of some cases fails by a check of its own, or the kernel notices by itself."""
    for seed in range(SEEDS):
        if await _fails(folder / str(seed), seed):
            return True
    return False


async def _fails(folder: Path, seed: int) -> bool:
    folder.mkdir()
    machine = Machine(folder, seed)
    try:
        await machine.run(steps=40)
    except (Violation, RuntimeError):
        return True
    finally:
        await _closed(machine.world.close)
        shutil.rmtree(folder, ignore_errors=True)
    return False


async def _closed(close: Callable[[], Awaitable[None]]) -> None:
    """A broken kernel may be broken at its end as well."""
    try:
        await close()
    except (AntiphonError, RuntimeError, ValueError):
        return
