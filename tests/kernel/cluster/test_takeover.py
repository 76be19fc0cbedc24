"""Contexts whose kernel dies, is cut off, or was stopped and wakes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from antiphon_kernel.cluster import forwarding
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, NotOwnerError
from tests.kernel.cluster.conftest import Node, OpenNode
from tests.waiting import PATIENCE, until


async def _root(node: Node, label: str = "default") -> int:
    contexts = node.kernel.contexts
    return contexts.root(contexts[await contexts.look_up(label)].number)


async def test_context_of_a_dead_kernel_is_taken_with_all_that_was_acknowledged(
    open_node: OpenNode,
) -> None:
    dead, other = await open_node(), await open_node(takeover_look_seconds=3600)
    block = (await dead.call("block.create", kind="text", content="kept"))["block_id"]
    root = await _root(dead)

    await dead.link.close()
    with forwarding():
        async with asyncio.timeout(PATIENCE):
            while not other.ownership.owns(root):
                with suppress(NotOwnerError):
                    await other.kernel.context()
        assert await other.text(block) == "kept"


async def test_running_blocks_of_a_dead_kernel_are_interrupted_though_nobody_asks(
    open_node: OpenNode,
) -> None:
    dead, other = await open_node(), await open_node()
    block = await dead.running_block("half an ans")
    taken: list[int] = []
    assert other.kernel.takeover is not None
    other.kernel.takeover.taken.listen(taken.append)

    await dead.link.close()
    await until(lambda: taken)

    context = other.kernel.open_contexts.get((await other.kernel.context()).id)
    assert context is not None
    header = context.document.header(block)
    assert (header.status, header.stop_reason) == ("error", "interrupted")


@pytest.mark.parametrize("is_fenced", [True, False])
async def test_commit_of_a_former_owner_is_refused_by_the_fence_alone(
    open_node: OpenNode, is_fenced: bool
) -> None:
    former, other = await open_node(), await open_node()
    block = (await former.call("block.create", kind="text", content="kept"))["block_id"]
    if not is_fenced:
        former.kernel.journal.fence = None
    root, taken = await _root(former), list[int]()
    assert other.kernel.takeover is not None
    other.kernel.takeover.taken.listen(taken.append)

    former.link.stop()
    late = asyncio.create_task(
        former.call("block.splice", block_id=block, offset=0, insert="late ")
    )
    await until(lambda: taken == [root])
    await until(lambda: not former.ownership.is_live)
    former.link.go_on()

    if is_fenced:
        with pytest.raises(NotOwnerError):
            await late
    else:
        await late
    rows = await other.kernel.journal.updates(other.kernel.contexts.of_number(root), 0)
    assert len(rows) == (await other.kernel.context()).seq + (not is_fenced)


async def test_kernel_that_is_cut_off_acknowledges_nothing_and_gives_up_its_contexts(
    open_node: OpenNode,
) -> None:
    node = await open_node()
    block = (await node.call("block.create", kind="text", content="kept"))["block_id"]
    context = await node.kernel.context()
    failures: list[AntiphonError] = []
    context.failed.listen(failures.append)

    await node.link.close()
    with pytest.raises(AntiphonError) as caught:
        await node.call("block.splice", block_id=block, offset=0, insert="lost ")
    await until(lambda: not node.ownership.is_live)

    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert [one.code for one in failures] == [ErrorCode.STORAGE_FAILED]
    assert node.kernel.open_contexts.ids() == ()


async def test_contexts_that_nobody_writes_in_are_lost_with_the_lease(open_node: OpenNode) -> None:
    node = await open_node()
    context = await node.kernel.context()
    failures: list[AntiphonError] = []
    context.failed.listen(failures.append)

    node.link.stop()
    await until(lambda: failures)

    assert [one.code for one in failures] == [ErrorCode.NOT_OWNER]
    assert node.kernel.open_contexts.ids() == ()
    node.link.go_on()
    await until(lambda: node.ownership.is_live)
    assert (await node.kernel.context()).seq == context.seq


async def test_kernel_that_ends_without_its_database_shows_no_error(open_node: OpenNode) -> None:
    node = await open_node()
    await node.kernel.context()

    await node.link.close()

    await node.kernel.close()
