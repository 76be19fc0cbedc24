"""Blocks are moved, folded and excluded: by whom, where to, and what changes with it.

Parents of blocks: a model's something, a result its call.
"""

from __future__ import annotations

import random
from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.block_metadata import is_cut_out
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused


async def standing(kernel: Kernel) -> list[str]:
    return list((await kernel.context()).document.block_ids())


async def test_blocks_stand_where_a_list_would_have_them_after_every_move(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    rng = random.Random(11)
    oracle = [await make(str(n)) for n in range(7)]
    for _ in range(120):
        block, neighbour = rng.sample(oracle, 2)
        side = rng.choice(("after", "before"))
        await kernel.call(amy, "block.move", {"block_id": block, side: neighbour})
        oracle.remove(block)
        oracle.insert(oracle.index(neighbour) + (side == "after"), block)
        assert await standing(kernel) == oracle


async def test_block_that_stands_there_already_is_not_changed(call: Caller, make: Make) -> None:
    first, second = await make("1"), await make("2")
    seq = (await call.context()).seq
    for params in ({"block_id": second, "after": first}, {"block_id": first, "before": second}):
        done = await call("block.move", **params)
        assert done == {"version": 1, "context_version": seq}


async def test_stored_keys_that_leave_no_room_or_are_none_are_replaced(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    mover, *blocks = [await make(str(n)) for n in range(4)]
    document = (await kernel.context()).document
    for keys in (("a", "a0", "b"), ("", "", ""), ("é", "ü", "ü"), ("~", "~", "~")):
        for side in ("after", "before"):
            for block, key in zip(blocks, keys, strict=True):
                document.set_fields(block, order=key)
            expected = [one for one in await standing(kernel) if one != mover]
            for neighbour in expected:
                await kernel.call(amy, "block.move", {"block_id": mover, side: neighbour})
                at = expected.index(neighbour) + (side == "after")
                assert await standing(kernel) == [*expected[:at], mover, *expected[at:]], keys
    appended = await make("last")
    assert (await standing(kernel))[-1] == appended


async def test_neighbours_get_other_keys_with_the_move_that_needs_them_or_not_at_all(
    kernel: Kernel, amy: Actor, aria: Actor, make: Make, open_kernel: OpenKernel
) -> None:
    first, second, third = [await make(str(n)) for n in range(3)]
    context = await kernel.context()

    def change() -> None:
        context.document.set_fields(second, order=context.document.header(first).order)

    await context.write(amy, "move", change, blocks=[second]).saved()
    params = {"block_id": third, "after": min(first, second)}
    await refused(kernel, aria, "block.move", params)
    await kernel.call(amy, "block.move", params)
    moved = await standing(kernel)
    await kernel.close()
    assert moved == [min(first, second), third, max(first, second)]
    assert await standing(await open_kernel()) == moved


async def test_move_looks_at_neighbours_only(kernel: Kernel, call: Caller, make: Make) -> None:
    blocks = [await make(str(n)) for n in range(60)]
    document = (await kernel.context()).document
    asked: list[str] = []
    order = document.order
    whole = order.key

    def counting(block: str) -> tuple[str, str]:
        asked.append(block)
        return whole(block)

    order.key = counting  # type: ignore[method-assign]
    await call("block.move", block_id=blocks[50], after=blocks[10])
    assert len(asked) <= 4


async def test_flag_is_set_and_taken_back_and_the_same_again_is_no_change(
    call: Caller, make: Make
) -> None:
    for tool, flag in (("block.collapse", "collapsed"), ("block.exclude", "excluded")):
        block = await make("x", status="done")
        versions = [
            (await call(tool, block_id=block, **params))["version"]
            for params in ({}, {}, {flag: True}, {flag: False}, {flag: False}, {flag: True})
        ]
        assert versions == [2, 2, 2, 3, 3, 4]
        found = await call("block.read", block_id=block)
        assert found[flag] is True
        assert not found["edited_after_done"]


async def test_editor_arranges_anyones_blocks_and_a_model_only_its_own(
    kernel: Kernel, aria: Actor, amy: Actor, bo: Actor, make: Make
) -> None:
    first, last = await make("1"), await make("2")
    own = str(
        (
            await kernel.call(
                aria,
                "block.create",
                {"role": "model", "kind": "text", "content": "x", "parent_id": first},
            )
        )["block_id"]
    )
    calls = [("block.move", {"before": first}), ("block.collapse", {}), ("block.exclude", {})]
    for tool, params in calls:
        if tool == "block.collapse":
            await kernel.call(aria, tool, {"block_id": last, "collapsed": True})
        else:
            error = await refused(kernel, aria, tool, {"block_id": last, **params})
            assert error.code is ErrorCode.PERMISSION_DENIED
        await kernel.call(aria, tool, {"block_id": own, **params})
        await kernel.call(bo, tool, {"block_id": last, **params})
    await kernel.members.give_role(bo.principal, AccessRole.VIEWER)
    for tool, params in calls:
        error = await refused(kernel, bo, tool, {"block_id": last, **params})
        assert error.code is ErrorCode.PERMISSION_DENIED


async def test_block_is_cut_out_by_people_only_and_comes_back_when_it_is_not_excluded(
    kernel: Kernel, aria: Actor, bo: Actor, call: Caller, make: Make
) -> None:
    block = await make("x", status="done")
    answer = {"role": "model", "kind": "text", "content": "y", "parent_id": block}
    own = str((await kernel.call(aria, "block.create", answer))["block_id"])
    error = await refused(kernel, aria, "block.exclude", {"block_id": own, "cut_out": True})
    assert error.code is ErrorCode.PERMISSION_DENIED
    document = (await kernel.context("default")).document
    for params, expected in (
        ({"cut_out": True}, True),
        ({"excluded": False, "cut_out": True}, False),
        ({"cut_out": True}, True),
        ({}, False),
    ):
        await kernel.call(bo, "block.exclude", {"block_id": block, **params})
        assert is_cut_out(document.header(block)) is expected


async def test_block_of_role_model_has_a_parent(
    kernel: Kernel, amy: Actor, aria: Actor, make: Make
) -> None:
    for kind in BlockKind:
        prompt = await make("?", status="done")
        is_result = kind is BlockKind.TOOL_RESULT
        parent = await make("ls", kind="tool_call") if is_result else prompt
        new = {"kind": kind.value, "content": "!", "status": "done"}
        error = await refused(kernel, aria, "block.create", new)
        assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, "parent_id")
        assert "give parent_id" in error.message
        made = await kernel.call(aria, "block.create", {**new, "parent_id": parent})
        header = (await kernel.context()).document.header(made["block_id"])
        assert header.parent == parent


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


async def _call_with_result(kernel: Kernel, actor: Actor, **more: Any) -> tuple[str, str]:
    fields = {"kind": "tool_call", "metadata": {"tool_name": "shell"}}
    call = (await kernel.call(actor, "block.create", {**fields, "content": "ls"}))["block_id"]
    fields = {"kind": "tool_result", "parent_id": call, "metadata": more}
    result = (await kernel.call(actor, "block.create", fields))["block_id"]
    return call, result


async def test_create_of_a_second_result_needs_a_first_that_says_more_and_stands_behind_its_call(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    first = await make("before", status="done")
    call, result = await _call_with_result(kernel, amy)
    params = {"kind": "tool_result", "parent_id": call}
    error = await refused(kernel, amy, "block.create", params)
    assert (error.code, error.details["result"]) == (ErrorCode.INVALID_PARAMS, result)
    call, _ = await _call_with_result(kernel, amy, more=True)
    params = {"kind": "tool_result", "parent_id": call}
    error = await refused(kernel, amy, "block.create", {**params, "after": first})
    assert (error.code, error.details["call"]) == (ErrorCode.INVALID_PARAMS, call)
    result = (await kernel.call(amy, "block.create", params))["block_id"]
    await kernel.call(amy, "block.status", {"block_id": call, "status": "done"})
    assert (await kernel.context()).document.block_ids()[-1] == result, "it stays where it is"


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
