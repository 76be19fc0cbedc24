"""The block tools do what the design says, and what fails changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused
from tests.waiting import PATIENCE


async def test_created_block_reads_back(call: Caller, make: Make) -> None:
    block = await make("one\ntwo\n", metadata={"language": "en", "mood": "calm"})
    found = await call("block.read", block_id=block)
    assert found["content"] == "one\ntwo\n"
    assert found["line_count"] == 2
    assert found["version"] == 1
    assert found["status"] == "running"
    assert found["language"] == "en"
    assert found["metadata"] == {"mood": "calm"}


@pytest.mark.parametrize(
    ("content", "asked", "status"),
    [("", None, "pending"), ("x", None, "running"), ("x", "done", "done"), ("", "done", "done")],
)
async def test_first_status_follows_from_the_content(
    call: Caller, make: Make, content: str, asked: str | None, status: str
) -> None:
    extra = {"status": asked} if asked else {}
    block = await make(content, **extra)
    assert (await call("block.read", block_id=block))["status"] == status


async def test_blocks_stand_where_they_were_put(call: Caller, make: Make) -> None:
    first, last = await make("1"), await make("3")
    middle = await make("2", after=first)
    listed = await call("block.list")
    assert [one["block_id"] for one in listed["blocks"]] == [first, middle, last]


async def test_something_fits_between_blocks_that_concurrency_gave_one_key(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    blocks = sorted([await make(str(n)) for n in range(4)])
    document = (await kernel.context()).document
    for block in blocks:
        document.set_fields(block, order="a5")
    new = await make("new", after=blocks[1])
    assert list(document.block_ids()) == [*blocks[:2], new, *blocks[2:]]


async def test_missing_neighbour_is_an_error_and_not_the_end(call: Caller) -> None:
    missing = f"default.amy.{99}"
    error = await call.refused("block.create", role="user", kind="text", after=missing)
    assert error.code is ErrorCode.BLOCK_NOT_FOUND


async def test_block_id_in_any_printed_form_is_accepted(call: Caller, make: Make) -> None:
    block = await make("x")
    context, principal, seq = block.split(".")
    for form in (block, f"default.amy.{seq}", f"{context[:20]}.{principal}.{seq}"):
        assert (await call("block.read", block_id=form))["block_id"] == block


async def test_ambiguous_prefix_lists_the_candidates(kernel: Kernel, call: Caller) -> None:
    other = await kernel.create_context("other")
    first = await kernel.context()
    common = len([1 for a, b in zip(first.id, other.id, strict=True) if a == b and a])
    prefix = first.id[: min(common, 4)]
    error = await call.refused("block.list", context=prefix)
    assert error.code is ErrorCode.AMBIGUOUS_ID
    assert set(error.details["candidates"]) == {first.id, other.id}


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


async def test_edit_that_changes_nothing_commits_nothing(call: Caller, make: Make) -> None:
    block = await make("a\n")
    seq = (await call.context()).seq
    same = {"op": "replace", "start_line": 0, "end_line": 1, "content": "a"}
    done = await call("block.edit", block_id=block, operations=[same])
    assert done == {"version": 1, "context_version": seq}


async def test_splice_counts_code_points(call: Caller, make: Make) -> None:
    block = await make("a😀漢\r\n")
    await call("block.splice", block_id=block, offset=1, delete_count=1, insert="é")
    assert (await call("block.read", block_id=block))["content"] == "aé漢\r\n"
    error = await call.refused("block.splice", block_id=block, offset=5, delete_count=1)
    assert error.code is ErrorCode.INVALID_PARAMS
    assert error.details["length"] == 5


async def test_splice_that_changes_nothing_commits_nothing(call: Caller, make: Make) -> None:
    block = await make("a😀c", status="done")
    seq = (await call.context()).seq
    for count, insert in ((0, ""), (1, "😀")):
        params = {"block_id": block, "offset": 1, "delete_count": count, "insert": insert}
        done = await call("block.splice", **params)
        assert done == {"version": 1, "context_version": seq}
    assert not (await call("block.read", block_id=block))["edited_after_done"]


async def test_pending_block_runs_with_its_first_write(call: Caller, make: Make) -> None:
    block = await make()
    done = await call("block.append", block_id=block, text="x")
    assert done["version"] == 2
    assert (await call("block.read", block_id=block))["status"] == "running"


async def test_append_to_done_block_is_rejected(call: Caller, make: Make) -> None:
    block = await make("x", status="done")
    error = await call.refused("block.append", block_id=block, text="y")
    assert error.code is ErrorCode.INVALID_TRANSITION


async def test_status_goes_forward_only(call: Caller, make: Make) -> None:
    block = await make("x")
    version = (await call("block.status", block_id=block, status="running"))["version"]
    assert version == 1
    await call("block.status", block_id=block, status="done")
    for back in ("pending", "running", "error"):
        error = await call.refused("block.status", block_id=block, status=back)
        assert error.code is ErrorCode.INVALID_TRANSITION
        assert error.details["allowed"] == ["done"]


async def test_block_status_of_foreign_block_is_denied(
    kernel: Kernel, bo: Actor, amy: Actor, make: Make
) -> None:
    block = await make("x")
    error = await refused(kernel, bo, "block.status", {"block_id": block, "status": "done"})
    assert error.code is ErrorCode.PERMISSION_DENIED


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


@pytest.mark.parametrize(
    ("tool", "params", "code"),
    [
        ("block.reed", {}, ErrorCode.UNKNOWN_TOOL),
        ("block.read", {}, ErrorCode.INVALID_PARAMS),
        ("block.read", {"block_id": 5}, ErrorCode.INVALID_PARAMS),
        ("block.read", {"block_id": "x"}, ErrorCode.BLOCK_NOT_FOUND),
        ("block.read", {"block_id": "default.amy.77"}, ErrorCode.BLOCK_NOT_FOUND),
        ("block.read", {"block_id": "nowhere.amy.1"}, ErrorCode.CONTEXT_NOT_FOUND),
        ("block.create", {"role": "wizard", "kind": "text"}, ErrorCode.INVALID_PARAMS),
        ("block.create", {"role": "user", "kind": "text", "colour": 1}, ErrorCode.INVALID_PARAMS),
        (
            "block.create",
            {"role": "user", "kind": "text", "content": "\ud83d"},
            ErrorCode.INVALID_PARAMS,
        ),
        ("block.list", {"limit": "all"}, ErrorCode.INVALID_PARAMS),
        ("block.list", {"depth": 2}, ErrorCode.INVALID_PARAMS),
    ],
)
async def test_bad_call_says_what_was_expected(
    call: Caller, tool: str, params: dict[str, Any], code: ErrorCode
) -> None:
    error = await call.refused(tool, **params)
    assert error.code is code
    assert error.message.endswith(".")


async def test_range_of_lines_is_read_with_numbers(call: Caller, make: Make) -> None:
    block = await make("a\nb\nc")
    found = await call(
        "block.read", block_id=block, line_numbers=True, range={"start": 1, "end": 3}
    )
    assert found["content"] == "1\tb\n2\tc"
    error = await call.refused("block.read", block_id=block, range={"start": 1, "end": 4})
    assert error.code is ErrorCode.LINE_OUT_OF_RANGE


async def test_list_filters_and_goes_on_where_it_stopped(call: Caller, make: Make) -> None:
    root = await make("root")
    children = [await make(str(n), parent_id=root, role="model") for n in range(5)]
    grandchild = await make("g", parent_id=children[0], role="tool")
    page = await call("block.list", parent_id=root, limit=3)
    assert [one["block_id"] for one in page["blocks"]] == children[:3]
    assert page["truncated"]
    rest = await call("block.list", parent_id=root, after_block=page["next"])
    assert [one["block_id"] for one in rest["blocks"]] == children[3:]
    deep = await call("block.list", parent_id=root, depth=2, role="tool")
    assert [one["block_id"] for one in deep["blocks"]] == [grandchild]


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


@pytest.mark.parametrize("last", ["line\n", "x" * 51])
async def test_newline_or_a_full_buffer_flushes_at_once(
    kernel: Kernel, call: Caller, make: Make, last: str
) -> None:
    block = await make(role="tool")
    append = {"block_id": block, "stream": True}
    await call("block.append", **append, text="a")
    done = await call("block.append", **append, text=last)
    assert done["unflushed"] == 0
    assert (await kernel.context()).document.text(block) == "a" + last


async def test_call_after_streamed_append_sees_its_text(
    kernel: Kernel, call: Caller, bo: Actor, make: Make
) -> None:
    block = await make(role="tool")
    stream = {"block_id": block, "text": "abc", "stream": True}
    await call("block.append", **stream)
    await kernel.call(bo, "block.append", {"block_id": block, "text": "DEF"})
    await call("block.append", **stream)
    assert (await kernel.call(bo, "block.read", {"block_id": block}))["content"] == "abcDEFabc"


async def test_undo_takes_back_only_ones_own_and_survives_a_restart(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, open_kernel: Any
) -> None:
    block = await make("base ", status="done")
    for actor, text in ((bo, "one "), (amy, "AMY "), (bo, "two ")):
        length = len((await kernel.context()).document.text(block))
        await kernel.call(
            actor, "block.splice", {"block_id": block, "offset": length, "insert": text}
        )
    await kernel.close()
    again = await open_kernel()
    bo = again.open_session(await again.principal("bo"), "test")
    text = "base one AMY two "
    for expected in ("base one AMY ", "base AMY "):
        done = await again.call(bo, "block.undo", {"block_id": block})
        assert done["undone"] == [block]
        assert (await again.context()).document.text(block) == expected
    with raises(ErrorCode.NOTHING_TO_UNDO):
        await again.call(bo, "block.undo", {"block_id": block})
    for _ in range(2):
        await again.call(bo, "block.redo", {"block_id": block})
    assert (await again.context()).document.text(block) == text


async def test_new_edit_clears_what_could_be_redone(call: Caller, make: Make) -> None:
    block = await make("", status="done")

    async def insert(text: str) -> None:
        await call("block.splice", block_id=block, offset=0, insert=text)

    await insert("one")
    await call("block.undo", block_id=block)
    await insert("two")
    await call("block.undo", block_id=block)
    await call("block.redo", block_id=block)
    assert (await call.context()).document.text(block) == "two"
    with raises(ErrorCode.NOTHING_TO_REDO):
        await call("block.redo", block_id=block)


async def test_undo_of_another_user_is_denied_to_non_owner(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("x")
    error = await refused(kernel, bo, "block.undo", {"block_id": block, "principal": "amy"})
    assert error.code is ErrorCode.PERMISSION_DENIED


async def test_models_last_run_can_be_undone_by_anybody(
    kernel: Kernel, aria: Actor, bo: Actor, make: Make
) -> None:
    made = await kernel.call(aria, "block.create", {"parent_id": await make(), "kind": "text"})
    block = made["block_id"]
    for word in ("one ", "two ", "three\n"):
        await kernel.call(aria, "block.append", {"block_id": block, "text": word, "stream": True})
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 4, "insert": "BO "})
    await kernel.call(bo, "block.undo", {"block_id": block, "principal": "aria"})
    assert (await kernel.context()).document.text(block) == "BO "


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


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "insert", "line": 9, "content": "x"}], ErrorCode.LINE_OUT_OF_RANGE),
        ([{**DELETION, "expected_text": "no"}], ErrorCode.CONTENT_MISMATCH),
        ([DELETION] * 2, ErrorCode.OVERLAPPING_OPERATIONS),
    ],
)
async def test_edit_that_fails_names_the_version_that_its_lines_are_of(
    call: Caller, make: Make, operations: list[dict[str, Any]], code: ErrorCode
) -> None:
    block = await make("a\nb\n")
    await call("block.splice", block_id=block, offset=0, insert="x\n")
    for base in (None, 1):
        params: dict[str, Any] = {"block_id": block, "operations": operations, "base_version": base}
        error = await call.refused("block.edit", **params)
        assert (error.code, error.details["version"]) == (code, base or 2)
