"""Parents of blocks: a model's something, a result its call."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make, refused


@pytest.mark.parametrize("kind", list(BlockKind))
async def test_block_of_role_model_has_a_parent(
    kernel: Kernel, amy: Actor, aria: Actor, make: Make, kind: BlockKind
) -> None:
    prompt = await make("?", status="done")
    parent = prompt if kind is not BlockKind.TOOL_RESULT else await make("ls", kind="tool_call")
    new = {"kind": kind.value, "content": "!", "status": "done"}
    error = await refused(kernel, aria, "block.create", new)
    assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, "parent_id")
    assert "give parent_id" in error.message
    made = await kernel.call(aria, "block.create", {**new, "parent_id": parent})
    header = (await kernel.context()).document.header(made["block_id"])
    assert header.parent == parent


@pytest.mark.parametrize("role", ["user", "system", "tool"])
async def test_block_of_user_or_system_needs_no_parent(make: Make, role: str) -> None:
    await make("hello", role=role)
    await make("ls", role=role, kind="tool_call")


async def test_result_answers_a_call_and_nothing_else(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    prompt = await make("?", status="done")
    fields = {"tool_call_id": "c1", "tool_kind": "shell"}
    call = await make("ls", role="model", kind="tool_call", parent_id=prompt, metadata=fields)
    new: dict[str, Any] = {"kind": "tool_result", "content": "a"}
    for wrong in ({}, {"parent_id": prompt}):
        error = await refused(kernel, amy, "block.create", {**new, **wrong})
        assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, "parent_id")
        assert "of kind tool_call" in error.message
    other = {"parent_id": call, "metadata": {"tool_call_id": "c2"}}
    error = await refused(kernel, amy, "block.create", {**new, **other})
    assert error.details["field"] == "metadata.tool_call_id"
    assert error.details["expected"] == "c1"
    for right in ({"metadata": {"more": True}}, {"metadata": {"tool_call_id": "c1"}}):
        made = await kernel.call(amy, "block.create", {**new, "parent_id": call, **right})
        header = (await kernel.context()).document.header(made["block_id"])
        assert (header.parent, header.tool_call_id) == (call, "c1")


async def test_model_block_of_older_kernel_without_parent_is_read_and_continued(
    kernel: Kernel, context: Context, amy: Actor, aria: Actor, make: Make, open_kernel: Any
) -> None:
    old = await make("an answer", role="model", parent_id=await make("?", status="done"))
    forget = lambda: context.document.set_fields(old, parent=None)  # noqa: E731
    await context.write(kernel.system, "create", forget, blocks=[old], undo=None).saved()
    await kernel.close()
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    read = await kernel.call(amy, "block.read", {"block_id": old})
    assert (read["content"], read["role"]) == ("an answer", "model")
    assert "parent_id" not in read
    exported = await kernel.call(amy, "context.export", {})
    params = {"text": exported["text"], "label": "imported"}
    assert (await kernel.call(amy, "context.import", params))["blocks"] == 2
    assert (await kernel.call(amy, "context.fork", {"context": "default"}))["blocks"] == 2
    await kernel.call(amy, "block.create", {"kind": "text", "parent_id": old})


async def _call_with_result(kernel: Kernel, actor: Actor, **more: Any) -> tuple[str, str]:
    fields = {"kind": "tool_call", "metadata": {"tool_name": "shell"}}
    call = (await kernel.call(actor, "block.create", {**fields, "content": "ls"}))["block_id"]
    fields = {"kind": "tool_result", "parent_id": call, "metadata": more}
    result = (await kernel.call(actor, "block.create", fields))["block_id"]
    return call, result


async def test_create_of_a_result_in_front_of_its_call_is_refused(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    first = await make("before", status="done")
    call, _ = await _call_with_result(kernel, amy, more=True)
    params = {"kind": "tool_result", "parent_id": call, "after": first}
    error = await refused(kernel, amy, "block.create", params)
    assert (error.code, error.details["call"]) == (ErrorCode.INVALID_PARAMS, call)


async def test_create_of_a_second_result_needs_a_first_that_says_more(
    kernel: Kernel, amy: Actor
) -> None:
    call, result = await _call_with_result(kernel, amy)
    params = {"kind": "tool_result", "parent_id": call}
    error = await refused(kernel, amy, "block.create", params)
    assert (error.code, error.details["result"]) == (ErrorCode.INVALID_PARAMS, result)
    call, _ = await _call_with_result(kernel, amy, more=True)
    await kernel.call(amy, "block.create", {**params, "parent_id": call})


async def test_move_never_puts_a_result_in_front_of_its_call(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    first = await make("before", status="done")
    call, result = await _call_with_result(kernel, amy)
    last = await make("behind", status="done")
    moves = (
        (result, {"before": first}),
        (result, {"after": first}),
        (result, {"before": call}),
        (call, {"after": result}),
        (call, {"after": last}),
        (call, {"before": last}),
    )
    for block, place in moves:
        error = await refused(kernel, amy, "block.move", {"block_id": block, **place})
        assert error.code is ErrorCode.INVALID_PARAMS, (block, place)
    for block, place in ((result, {"after": last}), (call, {"before": result})):
        await kernel.call(amy, "block.move", {"block_id": block, **place})
    order = (await kernel.context()).document.block_ids()
    assert order.index(call) < order.index(result)


async def test_end_of_a_users_call_leaves_it_where_it_is(kernel: Kernel, amy: Actor) -> None:
    call, result = await _call_with_result(kernel, amy)
    await kernel.call(amy, "block.status", {"block_id": call, "status": "done"})
    assert (await kernel.context()).document.block_ids()[-2:] == [call, result]
