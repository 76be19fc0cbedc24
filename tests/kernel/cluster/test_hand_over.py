"""Kernels that have their own contexts, and give them to each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.cluster import forwarding
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, NotOwnerError
from tests.kernel.cluster.conftest import Node, OpenNode
from tests.waiting import PATIENCE, until


async def _create(node: Node, content: str, **params: Any) -> str:
    made = await node.call("block.create", kind="text", content=content, **params)
    return str(made["block_id"])


def _owned(nodes: Sequence[Node], label: str) -> list[bool]:
    """Whether each node has a context."""
    found = []
    for node in nodes:
        contexts = node.kernel.contexts
        found.append(node.ownership.owns(contexts.root(contexts[contexts.find(label)].number)))
    return found


async def test_call_names_the_kernel_that_has_the_context_or_brings_the_context_here(
    open_node: OpenNode,
) -> None:
    former, other = await open_node(), await open_node()
    block = await _create(former, "here")
    with forwarding(), pytest.raises(NotOwnerError) as caught:
        await other.text(block)
    assert caught.value.address == former.ownership.address
    await former.call("context.create", label="notes")  # its maker's from the start
    with forwarding(), pytest.raises(NotOwnerError):
        await other.kernel.context("notes")

    context = await former.kernel.context()
    failures: list[AntiphonError] = []
    context.failed.listen(failures.append)

    assert await other.text(block) == "here"

    assert [one.code for one in failures] == [ErrorCode.NOT_OWNER]
    assert _owned([former, other], "default") == [False, True]
    assert await former.text(block) == "here"  # and back
    assert _owned([former, other], "default") == [True, False]


async def test_hand_over_waits_for_what_is_on_its_way(open_node: OpenNode) -> None:
    former, other = await open_node(), await open_node()
    block = await _create(former, "")
    appends = [
        asyncio.create_task(former.call("block.splice", block_id=block, offset=0, insert=one))
        for one in "abcdefgh"
    ]
    await asyncio.sleep(0)

    text = await other.text(block)
    results = await asyncio.gather(*appends, return_exceptions=True)

    acknowledged = {
        letter
        for letter, one in zip("abcdefgh", results, strict=True)
        if not isinstance(one, BaseException)
    }
    assert acknowledged <= set(await other.text(block))
    assert text == await other.text(block)


async def test_hand_over_is_refused_while_a_model_writes(open_node: OpenNode) -> None:
    owner, other = await open_node(), await open_node()
    block = await owner.running_block()

    with pytest.raises(NotOwnerError, match="A program is writing in the context default"):
        await other.kernel.context()

    await owner.call("block.append", block_id=block, text="goes on")
    assert _owned([owner, other], "default") == [True, False]


async def test_kernel_that_ends_in_order_leaves_its_contexts_at_once(open_node: OpenNode) -> None:
    ending, other = await open_node(), await open_node()
    block = await _create(ending, "kept")

    await ending.kernel.close()

    with forwarding():  # nobody is asked
        assert await other.text(block) == "kept"


async def test_kernel_that_ends_lets_others_open_contexts_in_use_one_after_the_other(
    open_node: OpenNode,
) -> None:
    ending, _ = await open_node(), await open_node()
    for label in "abc":
        await ending.call("context.create", label=label)
        await _create(ending, label, context=label)

    begun = time.monotonic()
    await ending.kernel.open_contexts.hand_over_all()

    assert time.monotonic() - begun > 3 * 0.06
    assert not ending.ownership.roots()


async def test_forks_are_at_the_kernel_of_their_source(open_node: OpenNode) -> None:
    owner, other = await open_node(), await open_node()
    await _create(owner, "of both")
    await owner.call("context.fork", context="default", label="copy")
    await owner.call("context.fork", context="copy", label="copy-of-copy")

    await other.kernel.context("copy")

    labels = ["default", "copy", "copy-of-copy"]
    assert [_owned([owner, other], one) for one in labels] == [[False, True]] * 3
    assert owner.kernel.open_contexts.ids() == ()


async def test_drift_into_a_context_of_another_kernel_brings_it_here(open_node: OpenNode) -> None:
    owner, other = await open_node(), await open_node()
    await owner.call("context.create", label="notes")
    await other.call("context.create", label="source")
    block = await _create(other, "goes over", context="source", status="done")

    pushed = await other.call("drift.push", to="notes", blocks=[block])

    assert _owned([owner, other], "notes") == [False, True]
    assert await owner.text(pushed["blocks"][0]) == "goes over"
    assert owner.kernel.drifts[pushed["drift_id"]].state == "delivered"


async def test_contexts_and_labels_of_another_kernel_are_known(open_node: OpenNode) -> None:
    nodes = [await open_node(), await open_node()]

    results = await asyncio.gather(
        *(node.call("context.create", label="notes") for node in nodes), return_exceptions=True
    )
    failed = [one for one in results if isinstance(one, BaseException)]
    assert [getattr(one, "code", one) for one in failed] == [ErrorCode.INVALID_PARAMS]

    labels = [{one.label for one in node.kernel.contexts.rows()} for node in nodes]
    maker, other = nodes if "notes" in labels[0] else nodes[::-1]
    made = maker.kernel.contexts.find("notes")
    await until(lambda: made in {one.id for one in other.kernel.contexts.rows()})
    await maker.call("context.rename", context="notes", label="papers")
    await until(lambda: "papers" in {one.label for one in other.kernel.contexts.rows()})

    await _create(maker, "a needle")
    async with asyncio.timeout(PATIENCE):
        while not (await other.call("kernel.search", query="needle", kinds=["text"]))["results"]:
            await asyncio.sleep(0.05)
    assert _owned([maker, other], "default") == [True, False]  # it is found without being taken


async def test_idle_context_is_released(open_node: OpenNode) -> None:
    owner = await open_node(idle_context_seconds=0.05, idle_check_seconds=0.05)
    other = await open_node()
    block = await _create(owner, "here")

    await until(lambda: not owner.ownership.roots())

    async with asyncio.timeout(PATIENCE):
        while True:  # until the database knows it, too
            with forwarding(), suppress(NotOwnerError):
                assert await other.text(block) == "here"
                return
            await asyncio.sleep(0.05)


async def test_file_is_one_context_for_all_kernels(open_node: OpenNode, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text\n")
    (tmp_path / "b.txt").write_text("text\n")
    first = await open_node()
    await first.kernel.files.open("a.txt")
    nodes = [first, await open_node()]

    opened = await asyncio.gather(*(node.kernel.files.open("b.txt") for node in nodes))

    assert opened[0].context.id == opened[1].context.id
