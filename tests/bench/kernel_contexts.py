"""A data folder with many contexts, and what opening it costs; run as a process of its own.

python -m tests.bench.kernel_contexts make FOLDER CONTEXTS BLOCKS
python -m tests.bench.kernel_contexts open FOLDER COUNT
python -m tests.bench.kernel_contexts use FOLDER COUNT USED
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from pathlib import Path

from antiphon_kernel.contexts import UseScope
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import DEFAULT_LIMITS, Limits
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.processes import memory_of

TEXT = "The two of them write in turn, and one text holds both. " * 18


async def open_kernel(folder: Path, limits: Limits = DEFAULT_LIMITS) -> Kernel:
    registry = Registry(KERNEL_TOOLS)
    return await Kernel.open(folder / "data", folder, registry=registry, limits=limits)


async def make(folder: Path, contexts: int, blocks: int) -> None:
    kernel = await open_kernel(folder)
    me = kernel.open_session(kernel.owner, "bench")
    for number in range(contexts):
        context = await kernel.create_context(f"context-{number}")
        document = context.document
        for at in range(blocks):
            header = BlockHeader(
                id=str(context.next_block_id(me.principal.id)),
                kind=BlockKind.TEXT,
                role=Role.USER,
                status=Status.DONE,
                order=f"a{at:06}i",
                created="2026-01-01T00:00:00.000Z",
                author=me.principal.id,
            )
            create = partial(document.create_block, header, TEXT)
            context.write(me, "create", create, blocks=(), undo=None)
        await context.wait_persisted()
    await kernel.close()


async def open_some(folder: Path, count: int) -> None:
    start = time.perf_counter()
    kernel = await open_kernel(folder)
    started = time.perf_counter() - start
    before, opening = memory_of(), []
    for number in range(count):
        start = time.perf_counter()
        await kernel.context(f"context-{number}")
        opening.append(time.perf_counter() - start)
    grown = (memory_of() - before) / max(1, count)
    sys.stdout.write(json.dumps({"start": started, "opening": opening, "bytes": grown}))
    await kernel.close()


async def open_one(kernel: Kernel, label: str, *, is_used: bool) -> None:
    with UseScope():
        context = await kernel.context(label)
        if is_used:
            context.users.add()


async def use_some(folder: Path, count: int, used: int) -> None:
    """Open contexts one after the other, of which some are in use when the rest is closed."""
    limits = Limits(idle_context_seconds=0, idle_check_seconds=1e6)
    kernel = await open_kernel(folder, limits)
    before = memory_of()
    for number in range(count):
        await open_one(kernel, f"context-{number}", is_used=number < used)
    all_open = memory_of()
    for _ in range(2):  # memory goes back once nothing has been written between two of them
        await kernel.open_contexts.close_idle()
    grown = {"all": all_open - before, "used": memory_of() - before}
    sys.stdout.write(json.dumps(grown))
    await kernel.close()


if __name__ == "__main__":
    where = Path(sys.argv[2])
    if sys.argv[1] == "make":
        asyncio.run(make(where, int(sys.argv[3]), int(sys.argv[4])))
    elif sys.argv[1] == "open":
        asyncio.run(open_some(where, int(sys.argv[3])))
    else:
        asyncio.run(use_some(where, int(sys.argv[3]), int(sys.argv[4])))
