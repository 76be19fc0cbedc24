"""Kernels with a lot in them, to measure on."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from antiphon_kernel.contexts import Context, order_at_end
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns.request import context_request
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import Actor, BlockHeader

BLOCKS_AT_ONCE = 500


class Filled:
    """An open kernel, its owner, and the ways to fill its default context."""

    def __init__(self, kernel: Kernel, context: Context) -> None:
        self.kernel = kernel
        self.context = context
        self.owner: Actor = kernel.open_session(kernel.owner, "bench")

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.owner, tool, params)

    async def block(self, content: str) -> str:
        made = await self.call("block.create", kind="file", content=content)
        return str(made["block_id"])

    async def add_blocks(self, count: int, content: str) -> list[str]:
        """Blocks that are done, many in one change."""
        made: list[str] = []
        for start in range(0, count, BLOCKS_AT_ONCE):
            number = min(BLOCKS_AT_ONCE, count - start)

            def create(many: int = number) -> None:
                made.extend(self._blocks(many, content))

            await self.context.write(self.owner, "create", create, blocks=()).saved()
        return made

    def _blocks(self, count: int, content: str) -> list[str]:
        document, made = self.context.document, []
        for _ in range(count):
            block = str(self.context.next_block_id(self.owner.principal.id))
            header = BlockHeader(
                id=block,
                kind=BlockKind.TEXT,
                role=Role.USER,
                status=Status.DONE,
                order=order_at_end(document),
                created=iso_time(self.kernel.clock.now_ms()),
                author=self.owner.principal.id,
            )
            document.create_block(header, content)
            made.append(block)
        return made


@asynccontextmanager
async def filled(folder: Path, store: str | None = None) -> AsyncIterator[Filled]:
    """A kernel on the data in `folder` or in a store; closed at the end."""
    kernel = await Kernel.open(
        folder / "data", folder, registry=Registry((*KERNEL_TOOLS, context_request)), store=store
    )
    try:
        yield Filled(kernel, await kernel.context())
    finally:
        await kernel.close()


async def cpu_microseconds(
    act: Callable[[], Awaitable[object]], *, rounds: int = 7, calls: int = 20
) -> Sequence[float]:
    """Processor time of one `act`, of all threads, as measured in each round.

    Waiting for the disk does not count, so what grows cannot hide behind it.
    """
    samples = []
    for _ in range(rounds):
        before = time.process_time()
        for _ in range(calls):
            await act()
        samples.append((time.process_time() - before) / calls * 1e6)
    return samples


async def many_blocks(kernel: Filled, count: int) -> str:
    await kernel.add_blocks(count, "x" * 200)
    return await kernel.block("one\ntwo\nthree\n")


async def long_history(kernel: Filled, count: int) -> str:
    """A short block that has changed often."""
    block = await kernel.block("one\ntwo\nthree\n")
    document = kernel.context.document
    for number in range(count):
        word = f"{number % 10}"
        typed = partial(document.splice, block, 0, 1, word)
        kernel.context.write(kernel.owner, "splice", typed, blocks=[block])
    await kernel.context.wait_persisted()
    return block


async def _append_behind_a_deletion(kernel: Filled, block: str) -> None:
    last = kernel.context.document.length(block) - 1
    await kernel.call("block.splice", block_id=block, offset=last, delete_count=1, insert="")
    await kernel.call("block.append", block_id=block, text="c")


async def _edit(kernel: Filled, block: str) -> None:
    """Each another content: an edit that changes nothing costs nothing."""
    version = kernel.context.blocks.version(block)
    change = {"op": "replace", "start_line": 1, "end_line": 2, "content": f"{version}"}
    await kernel.call("block.edit", block_id=block, operations=[change])


def acts(kernel: Filled, block: str) -> Iterator[tuple[str, Callable[[], Awaitable[object]]]]:
    """Calls that change or read a little of a block, by name."""
    yield "block.append", lambda: kernel.call("block.append", block_id=block, text="a")
    yield "block.splice", lambda: kernel.call("block.splice", block_id=block, offset=1, insert="b")
    yield "block.edit", partial(_edit, kernel, block)
    yield "block.append behind a deletion", partial(_append_behind_a_deletion, kernel, block)
    yield "block.read", lambda: kernel.call("block.read", block_id=block)
