"""The block tools do what the design says, and what fails changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, OpenKernel
from tests.waiting import PATIENCE


async def test_first_status_follows_from_the_content(call: Caller, make: Make) -> None:
    for content, extra, status in (
        ("", {}, "pending"),
        ("x", {}, "running"),
        ("x", {"status": "done"}, "done"),
        ("", {"status": "done"}, "done"),
    ):
        block = await make(content, **extra)
        assert (await call("block.read", block_id=block))["status"] == status


async def test_edit_is_all_or_nothing(call: Caller, make: Make) -> None:
    block = await make("a\nb\nc\n", status="done")
    operations = [
        {"op": "replace", "start_line": 0, "end_line": 1, "content": "A", "expected_text": "a"},
        {"op": "insert", "line": 2, "content": "between"},
        {"op": "delete", "start_line": 2, "end_line": 3, "expected_text": "c"},
    ]
    for broken in range(3):
        spoilt = [dict(one) for one in operations]
        if "expected_text" in spoilt[broken]:
            spoilt[broken]["expected_text"] = "something else"
        else:
            spoilt[broken]["line"] = 17
        error = await call.refused("block.edit", block_id=block, operations=spoilt)
        assert error.code in (ErrorCode.CONTENT_MISMATCH, ErrorCode.LINE_OUT_OF_RANGE)
        assert error.details["operation"] == broken
    done = await call("block.edit", block_id=block, operations=operations)
    found = await call("block.read", block_id=block)
    assert found["content"] == "A\nb\nbetween\n"
    assert found["version"] == done["version"] == 2
    assert found["edited_after_done"]


async def test_splice_that_changes_nothing_commits_nothing(call: Caller, make: Make) -> None:
    block = await make("a😀c", status="done")
    seq = (await call.context()).seq
    for count, insert in ((0, ""), (1, "😀")):
        params = {"block_id": block, "offset": 1, "delete_count": count, "insert": insert}
        done = await call("block.splice", **params)
        assert done == {"version": 1, "context_version": seq}
    assert not (await call("block.read", block_id=block))["edited_after_done"]


async def test_status_goes_forward_only(call: Caller, make: Make) -> None:
    block = await make("x")
    version = (await call("block.status", block_id=block, status="running"))["version"]
    assert version == 1
    await call("block.status", block_id=block, status="done")
    for back in ("pending", "running", "error"):
        error = await call.refused("block.status", block_id=block, status=back)
        assert error.code is ErrorCode.INVALID_TRANSITION
        assert error.details["allowed"] == ["done"]


async def test_submitting_a_draft_moves_it_to_the_end_and_tells(call: Caller, make: Make) -> None:
    heard = []
    call.kernel.submissions.listen(heard.append)
    draft = await make(role="user")
    error = await call.refused("block.status", block_id=draft, status="done")
    assert "empty draft" in error.message
    other = await make("later")
    await call("block.append", block_id=draft, text="hello")
    await call("block.status", block_id=draft, status="done")
    assert list((await call.context()).document.block_ids()) == [other, draft]
    assert [one.block for one in heard] == [draft]


async def test_message_that_is_done_from_the_start_is_told_too(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    heard = []
    kernel.submissions.listen(heard.append)
    message = await make("hello", role="user", status="done")
    await make("", role="user", status="done")
    await make("not mine", role="model", parent_id=message, status="done")
    assert [one.block for one in heard] == [message]


async def test_streamed_append_is_batched_and_flushed_by_a_real_timer(
    context: Context, call: Caller, make: Make
) -> None:
    block = await make(role="tool")
    answers = [
        await call("block.append", block_id=block, text=t, stream=True) for t in ("he", "llo")
    ]
    assert [one["unflushed"] for one in answers] == [2, 5]
    assert context.document.text(block) == ""
    flushed = asyncio.Event()
    context.document.watch(lambda _: flushed.set())
    await asyncio.wait_for(flushed.wait(), PATIENCE)
    assert context.document.text(block) == "hello"


async def test_newline_or_a_full_buffer_flushes_at_once(
    context: Context, call: Caller, make: Make
) -> None:
    for last in ("line\n", "x" * 51):
        block = await make(role="tool")
        await call("block.append", block_id=block, stream=True, text="a")
        done = await call("block.append", block_id=block, stream=True, text=last)
        assert done["unflushed"] == 0
        assert context.document.text(block) == "a" + last


async def test_write_into_pending_tool_block_makes_writer_its_owner(
    open_kernel: OpenKernel,
) -> None:
    kernel = await open_kernel()
    script = kernel.open_session(await kernel.principal("robo", PrincipalKind.SHELL), "test")
    call = await kernel.call(script, "block.create", {"kind": "text"})
    await kernel.close()
    kernel = await open_kernel()
    bo = kernel.open_session(await kernel.principal("bo"), "test")
    splice = {"block_id": call["block_id"], "offset": 0, "insert": "here"}
    await kernel.call(bo, "block.splice", splice)
    amy = kernel.open_session(kernel.owner, "test")
    read = {"block_id": call["block_id"]}
    assert (await kernel.call(amy, "block.read", read))["status"] == "running"
    await kernel.close_session(bo)
    ended = await kernel.call(amy, "block.read", read)
    assert (ended["status"], ended["stop_reason"]) == ("error", "interrupted")


DELETION = {"op": "delete", "start_line": 0, "end_line": 2}


async def test_edit_that_fails_names_the_version_that_its_lines_are_of(
    call: Caller, make: Make
) -> None:
    block = await make("a\nb\n")
    await call("block.splice", block_id=block, offset=0, insert="x\n")
    for operations, code in (
        ([{"op": "insert", "line": 9, "content": "x"}], ErrorCode.LINE_OUT_OF_RANGE),
        ([{**DELETION, "expected_text": "no"}], ErrorCode.CONTENT_MISMATCH),
        ([DELETION] * 2, ErrorCode.OVERLAPPING_OPERATIONS),
    ):
        for base in (None, 1):
            params: dict[str, Any] = {"operations": operations, "base_version": base}
            error = await call.refused("block.edit", block_id=block, **params)
            assert (error.code, error.details["version"]) == (code, base or 2)
