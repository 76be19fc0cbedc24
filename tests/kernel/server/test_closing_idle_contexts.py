"""Connections to contexts that the kernel closes as soon as nobody uses them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from antiphon_kernel.contexts import UseScope
from antiphon_kernel.document.history.item_index import Segment
from antiphon_kernel.limits import Limits
from antiphon_kernel.validation.item_index import Container, ItemLocation
from antiphon_kernel.yjs.frames import Ack
from tests.kernel.served import ServedKernel, served_kernel
from tests.waiting import PATIENCE, until


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    limits = Limits(idle_context_seconds=0, idle_check_seconds=1e6)
    async with served_kernel(tmp_path, kernel_limits=limits) as served:
        yield served


@pytest.fixture
def closed(served: ServedKernel) -> list[str]:
    """The labels of the contexts that have been closed."""
    closed: list[str] = []
    served.kernel.closed.listen(lambda context: closed.append(context.label))
    return closed


async def close_until(served: ServedKernel, condition: Callable[[], bool]) -> None:
    """Close what nobody uses, again and again."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await served.kernel.open_contexts.close_idle()
            await asyncio.sleep(0)


async def test_context_of_a_replica_stays_open_until_it_leaves(
    served: ServedKernel, closed: list[str]
) -> None:
    block = await served.block("hello")
    replica = await served.replica()
    await served.kernel.open_contexts.close_idle()
    assert closed == []
    replica.document.append(block, " world")
    await replica.saved()
    await replica.close()
    await close_until(served, lambda: closed == ["default"])
    assert (await served.call("block.read", block_id=block))["content"] == "hello world"


async def write_and_leave(served: ServedKernel, block: str, word: str) -> None:
    """Join with a new document, write a word, and leave once it is acknowledged."""
    writer = await served.writer("ack=1")
    await writer.append(block, word)
    await writer.client.next(Ack)
    await writer.client.socket.close()


def count_indexed() -> int:
    """Count what the indexes of items and the histories of blocks in memory consist of."""
    return sum(type(one) in (Container, ItemLocation, Segment) for one in gc.get_objects())


async def test_context_that_a_client_wrote_to_is_freed_when_it_is_closed(
    served: ServedKernel, closed: list[str], collection_off: None
) -> None:
    before = count_indexed()
    block = await served.block("hello")
    await write_and_leave(served, block, " world")
    await served.call("block.blame", block_id=block)
    assert count_indexed() > before
    with UseScope():
        context = await served.context()
        opened, document = weakref.ref(context), weakref.ref(context.document)
    del context
    await close_until(served, lambda: closed == ["default"])
    await until(lambda: opened() is None and document() is None)
    assert count_indexed() == before
