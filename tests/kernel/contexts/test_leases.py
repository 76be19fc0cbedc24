"""A block of a model or tool stays open after a session of a single call, for a while."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.close_codes import CloseCode
from tests.clocks import ManualClock
from tests.kernel.kernel.calls import OpenKernel
from tests.waiting import until


@pytest.fixture
async def leasing(open_kernel: OpenKernel) -> Kernel:
    """A kernel whose leases are short."""
    return await open_kernel(Limits(write_lease_seconds=0.1))


async def call_once(kernel: Kernel, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    """A call through a session of its own."""
    actor = kernel.open_session(kernel.owner, "tcp", lasts=False)
    try:
        return await kernel.call(actor, tool, params)
    finally:
        await kernel.close_session(actor)


async def new_block(kernel: Kernel) -> str:
    request = {"kind": "tool_call", "content": "one "}
    return str((await call_once(kernel, "block.create", request))["block_id"])


async def status(kernel: Kernel, block: str) -> tuple[str, str | None]:
    context, found = await kernel.find_block(block)
    header = context.document.header(found)
    return str(header.status), header.stop_reason


async def test_a_lease_that_nobody_renews_interrupts_the_block(leasing: Kernel) -> None:
    block = await new_block(leasing)
    context, _ = await leasing.find_block(block)
    await until(lambda: context.document.header(block).status == "error", "the lease has ended")
    assert await status(leasing, block) == ("error", "interrupted")
    read = await call_once(leasing, "block.read", {"block_id": block})
    assert read["content"] == "one " and "lease" not in read


async def test_each_write_renews_the_lease(kernel: Kernel) -> None:
    block = await new_block(kernel)
    for tool, params in (
        ("block.append", {"text": "x"}),
        ("block.append", {"text": "x", "stream": True}),
        ("block.splice", {"offset": 0, "insert": "x"}),
    ):
        before = kernel.writers.next_lease_end
        await call_once(kernel, tool, {"block_id": block, **params})
        after = kernel.writers.next_lease_end
        assert before is not None and after is not None and before < after, (tool, params)


async def test_the_lease_is_shown_by_read_until_the_block_is_done(
    kernel: Kernel, clock: ManualClock
) -> None:
    block = await new_block(kernel)
    read = await call_once(kernel, "block.read", {"block_id": block})
    assert read["created"] < read["lease"]
    await call_once(kernel, "block.status", {"block_id": block, "status": "done"})
    assert "lease" not in await call_once(kernel, "block.read", {"block_id": block})


async def test_a_session_that_lasts_interrupts_its_blocks_at_its_end(kernel: Kernel) -> None:
    block = await new_block(kernel)
    lasting = kernel.open_session(kernel.owner, "tcp")
    await kernel.call(lasting, "block.append", {"block_id": block, "text": "x", "stream": True})
    assert "lease" not in await kernel.call(lasting, "block.read", {"block_id": block})
    await kernel.close_session(lasting)
    assert await status(kernel, block) == ("error", "interrupted")
    assert (await kernel.context()).document.text(block) == "one x"


async def test_a_dismissed_session_leaves_no_lease(kernel: Kernel, bo: Actor) -> None:
    actor = kernel.open_session(bo.principal, "tcp", lasts=False)
    request = {"kind": "tool_call", "content": "one "}
    block = (await kernel.call(actor, "block.create", request))["block_id"]
    dismissal = Dismissal(CloseCode.KICKED, "amy kicked bo.")
    kernel.sessions.dismiss(dismissal, lambda one: one is actor)
    await kernel.close_session(actor)
    assert await status(kernel, block) == ("error", "interrupted")
