"""Members of a context: those who change it are introduced there, others cost nothing."""

from __future__ import annotations

from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make, OpenKernel

IDLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("block.edit", {"operations": []}),
    (
        "block.edit",
        {"operations": [{"op": "replace", "start_line": 0, "end_line": 1, "content": "one"}]},
    ),
    ("block.splice", {"offset": 1, "delete_count": 0, "insert": ""}),
    ("block.append", {"text": ""}),
    ("block.collapse", {"collapsed": False}),
    ("block.exclude", {"excluded": False}),
    ("block.restore", {"version": 1}),
)


async def test_call_that_changes_nothing_leaves_no_trace_of_a_newcomer(
    kernel: Kernel, context: Context, bo: Actor, make: Make
) -> None:
    block = await make("one\n")
    before = context.seq, context.document.state_vector()
    for tool, params in IDLE:
        done = await kernel.call(bo, tool, {"block_id": block, **params})
        assert (done["version"], done["context_version"]) == (1, before[0]), tool
        assert (context.seq, context.document.state_vector()) == before, tool
        assert context.document.member(bo.principal.id) is None


async def test_first_change_introduces_whoever_makes_it_in_the_same_transaction(
    kernel: Kernel, context: Context, bo: Actor, make: Make, open_kernel: OpenKernel
) -> None:
    block = await make("one\n")
    seq = context.seq
    await kernel.call(bo, "block.append", {"block_id": block, "text": ""})
    written = await kernel.call(bo, "block.append", {"block_id": block, "text": "two"})
    assert (written["version"], written["context_version"]) == (2, seq + 1)
    member = context.document.member(bo.principal.id)
    assert member is not None
    assert (member.username, member.colour) == ("bo", 1)
    await kernel.close()
    again = await (await open_kernel()).context()
    assert again.document.member(bo.principal.id) == member
    assert again.seq == seq + 1


async def test_ensure_member_called_twice_writes_once(context: Context, bo: Actor) -> None:
    first = context.ensure_member(bo)
    seq = context.seq
    assert context.ensure_member(bo) == first
    assert (first.username, context.seq) == ("bo", seq)
    await context.wait_persisted()
