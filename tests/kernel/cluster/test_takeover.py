"""Contexts whose kernel dies, is cut off, or was stopped and wakes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from antiphon_kernel.cluster import forwarding
from antiphon_kernel.storage import DriftRow
from antiphon_kernel.tools.drift import DriftRequest, resume_all_drifts
from antiphon_kernel.types.enums import DriftKind
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
    default = other.kernel.contexts.find("default")

    def end() -> tuple[str, str | None] | None:
        context = other.kernel.open_contexts.get(default)
        header = context.document.header(block) if context is not None else None
        return (header.status, header.stop_reason) if header is not None else None

    await dead.link.close()
    await until(lambda: end() == ("error", "interrupted"))


async def test_drift_that_a_dead_kernel_has_staged_is_delivered_once(open_node: OpenNode) -> None:
    dead, others = await open_node(), [await open_node(), await open_node()]
    block = await dead.call("block.create", kind="text", content="goes over", status="done")
    await others[0].call("context.create", label="notes")
    contexts = others[0].kernel.contexts
    source, target = (contexts[contexts.find(one)].number for one in ("default", "notes"))
    owner = dead.kernel.owner.id
    request = DriftRequest(blocks=(block["block_id"],)).model_dump_json()
    row = DriftRow("d", DriftKind.PUSH, source, 2, target, owner, 0, request=request)
    await dead.kernel.drifts.store(row)
    resuming = [asyncio.create_task(resume_all_drifts(one.kernel)) for one in others]

    await dead.link.close()
    for one in others:
        drifts = one.kernel.drifts
        await until(lambda drifts=drifts: [row.seq > 0 for row in drifts.rows()] == [True])  # type: ignore[misc]

    listed = await others[1].call("block.list", context="notes")
    assert [one["kind"] for one in listed["blocks"]] == ["drift", "text"]
    for task in resuming:
        task.cancel()


async def test_commit_of_a_former_owner_is_refused_by_the_fence_alone(open_node: OpenNode) -> None:
    former, other = await open_node(), await open_node()
    block = (await former.call("block.create", kind="text", content="kept"))["block_id"]
    root = await _root(former)

    former.link.stop()
    late = asyncio.create_task(
        former.call("block.splice", block_id=block, offset=0, insert="late ")
    )
    await until(other.kernel.open_contexts.ids)
    await until(lambda: not former.ownership.is_live)
    former.link.go_on()

    with pytest.raises(NotOwnerError):
        await late
    rows = await other.kernel.journal.updates(other.kernel.contexts.of_number(root), 0)
    assert len(rows) == (await other.kernel.context()).seq


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
