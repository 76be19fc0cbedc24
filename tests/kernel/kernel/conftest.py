"""A real kernel on a real database, with a clock and ids that the test controls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.kernel.registry import Registry
from antiphon_kernel.kernel.tools.catalogue import KERNEL_TOOLS
from antiphon_kernel.types.records import Actor
from tests.clocks import ManualClock
from tests.kernel.kernel.calls import Make, OpenKernel


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def open_kernel(data: Path, clock: ManualClock) -> AsyncIterator[OpenKernel]:
    """Opens the kernel of the test's data folder; closes what is left open."""
    opened: list[Kernel] = []

    async def open_one() -> Kernel:
        kernel = await Kernel.open(
            data, data.parent, registry=Registry(KERNEL_TOOLS), owner="amy", clock=clock
        )
        opened.append(kernel)
        return kernel

    yield open_one
    for kernel in opened:
        await kernel.close()


@pytest.fixture
async def kernel(open_kernel: OpenKernel) -> Kernel:
    return await open_kernel()


@pytest.fixture
def amy(kernel: Kernel) -> Actor:
    return kernel.open_session(kernel.owner, "test")


@pytest.fixture
async def bo(kernel: Kernel) -> Actor:
    return kernel.open_session(await kernel.principal("bo"), "test")


@pytest.fixture
def make(kernel: Kernel, amy: Actor) -> Make:
    """Creates a text block of amy's, which is no draft, and returns its id."""

    async def make_one(content: str = "", **params: Any) -> str:
        request = {"role": "system", "kind": "text", "content": content, **params}
        return str((await kernel.call(amy, "block.create", request))["block_id"])

    return make_one
