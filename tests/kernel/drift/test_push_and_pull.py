"""Push and pull: what is copied, who wrote it, one step of undo, and delivery after a restart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.tools import drift
from antiphon_kernel.tools.drift import resume_drifts
from antiphon_kernel.types.drift import drift_origin
from antiphon_kernel.types.enums import DriftState
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, OpenKernel


def shown(context: Context) -> list[tuple[str, str]]:
    """Kind and text of each block that is not hidden."""
    document = context.document
    headers = document.headers(document.block_ids())
    return [(str(one.kind), document.text(one.id)) for one in headers if not one.excluded]


async def authors(call: Caller, block: str) -> list[tuple[str, str, str | None]]:
    """Each run of a text, its author, and the block that they wrote it in if it is another one."""
    text = (await call("block.read", block_id=block))["content"]
    runs = (await call("block.blame", block_id=block))["runs"]
    assert "".join(text[one["start"] : one["end"]] for one in runs) == text
    assert all(one["end"] == other["start"] for one, other in pairwise(runs))
    return [
        (text[one["start"] : one["end"]], one["username"], one.get("source_block_name"))
        for one in runs
    ]


@pytest.fixture
async def notes(call: Caller) -> Context:
    await call("context.create", label="notes")
    return await call.context("notes")


async def test_pushed_blocks_keep_kind_parent_and_authors(
    kernel: Kernel, call: Caller, make: Make, bo: Actor, notes: Context
) -> None:
    asked = await make("What is ü😀?", role="user", status="done")
    said = {"parent_id": asked, "status": "done"}
    thought = await make("Hm. ", role="model", kind="thinking", **said)
    answer = await make("A letter.", role="model", **said)
    await kernel.call(bo, "block.splice", {"block_id": answer, "offset": 2, "insert": "fine "})
    pushed = await call("drift.push", to="notes", blocks=[answer, asked, thought])
    assert pushed["state"] == DriftState.DELIVERED and pushed["target_label"] == "notes"
    header, *copies = map(notes.document.header, notes.document.block_ids())
    assert [one.id for one in copies] == pushed["blocks"] and header.id == pushed["block_id"]
    assert shown(notes) == [
        ("drift", ""),
        ("text", "What is ü😀?"),
        ("thinking", "Hm. "),
        ("text", "A fine letter."),
    ]
    assert [one.parent for one in copies] == [header.id, copies[0].id, copies[0].id]
    assert [one.source_block for one in copies] == [asked, thought, answer]
    origin = drift_origin(header.metadata)
    assert origin is not None and origin.blocks == (asked, thought, answer) and origin.wakes
    assert (origin.label, origin.version, origin.by) == ("default", 5, "amy")
    original, model = "default.model-writer.2", "model-writer"
    assert await authors(call, copies[2].id) == [
        *(("A ", model, original), ("fine ", "bo", original), ("letter.", model, original)),
    ]
    assert {one.username for one in notes.document.members()} >= {"bo", "model-writer"}


async def test_drift_that_is_excluded_takes_along_what_it_brought_until_it_is_read_again(
    call: Caller, make: Make, notes: Context
) -> None:
    asked = await make("The password is x.", role="user", status="done")
    pushed = await call("drift.push", to="notes", blocks=[asked])
    reply = {"parent_id": pushed["blocks"][0], "context": "notes", "status": "done"}
    await make("Mine.", role="user", **reply)
    await call("block.exclude", block_id=pushed["block_id"])
    assert shown(notes) == [("text", "Mine.")]
    await call("block.exclude", block_id=pushed["block_id"], excluded=False)
    kinds = [kind for kind, _ in shown(notes)]
    assert sorted(kinds) == ["drift", "text", "text"]


@pytest.mark.sqlite
async def test_drift_is_undone_and_redone_as_one_also_after_a_restart(
    kernel: Kernel, call: Caller, make: Make, notes: Context, open_kernel: OpenKernel, data: Path
) -> None:
    blocks = [await make(f"text {number}", role="user", status="done") for number in range(3)]
    before = [*shown(notes)]
    pushed = await call("drift.push", to="notes", blocks=blocks)
    after = [*shown(notes)]
    for _ in range(2):
        undone = await call("block.undo", context="notes")
        assert set(undone["undone"]) == {pushed["block_id"], *pushed["blocks"]}
        assert shown(notes) == before
        assert kernel.drifts[pushed["drift_id"]].state is DriftState.UNDONE
        await call("block.redo", context="notes")
        assert shown(notes) == after
    await call("block.undo", context="notes")
    await kernel.close()
    again = await open_kernel()
    call = Caller(again, again.open_session(again.owner, "test"))
    notes = await call.context("notes")
    assert shown(notes) == before
    await call("block.redo", context="notes")
    assert shown(notes) == after
    assert await authors(call, pushed["blocks"][0]) == [("text 0", "amy", "default.amy.1")]
    await again.close()
    assert (await run_checks(data)).clean


async def test_undo_of_a_drift_keeps_what_others_have_written_in_it(
    kernel: Kernel, call: Caller, make: Make, bo: Actor, notes: Context
) -> None:
    pushed = await call(
        "drift.push", to="notes", blocks=[await make("mine", role="user", status="done")]
    )
    (copy,) = pushed["blocks"]
    await kernel.call(bo, "block.splice", {"block_id": copy, "offset": 4, "insert": ", bo's"})
    await call("block.undo", context="notes")
    assert shown(notes) == [("text", ", bo's")]
    await call("block.redo", context="notes")
    assert shown(notes) == [("drift", ""), ("text", "mine, bo's")]


async def test_drift_that_was_staged_is_delivered_once_as_it_was(
    kernel: Kernel,
    call: Caller,
    make: Make,
    notes: Context,
    open_kernel: OpenKernel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block = await make("as it was", role="user", status="done")

    class Killed(Exception):
        pass

    async def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(drift, "deliver", killed)
        with pytest.raises(Killed):
            await call("drift.push", to="notes", blocks=[block])
    await call("block.splice", block_id=block, offset=0, delete_count=2, insert="AS")
    await kernel.close()
    again = await open_kernel()
    call = Caller(again, again.open_session(again.owner, "test"))
    for _ in range(2):
        await resume_drifts(again)
    notes = await call.context("notes")
    assert shown(notes) == [("drift", ""), ("text", "as it was")]
    (one,) = (await call("drift.list", context="notes"))["drifts"]
    assert (one["state"], one["username"]) == ("delivered", "amy")
    assert await authors(call, notes.document.block_ids()[1]) == [
        ("as it was", "amy", "default.amy.1")
    ]


async def test_drift_of_a_drift_names_first_authors_and_the_way_it_came(
    kernel: Kernel, call: Caller, make: Make, bo: Actor, notes: Context
) -> None:
    await call("context.create", label="third")
    first = await call(
        "drift.push", to="notes", blocks=[await make("one", role="user", status="done")]
    )
    (copy,) = first["blocks"]
    await kernel.call(bo, "block.splice", {"block_id": copy, "offset": 3, "insert": " two"})
    asked = {"context": "third", "kind": "text", "content": "?", "status": "done"}
    question = (await call("block.create", **asked))["block_id"]
    source = {"source": "notes", "blocks": [copy]}
    second = await call("drift.pull", **source, context="third", reply_to=question)
    third = await call.context("third")
    assert third.document.header(second["block_id"]).parent == question
    assert await authors(call, second["blocks"][0]) == [
        *(("one", "amy", "default.amy.1"), (" two", "bo", "notes.amy.2")),
    ]
    origin = drift_origin(third.document.header(second["block_id"]).metadata)
    assert origin is not None and origin.context == notes.id
    assert origin.lineage == ((await call.context()).id,)
    forked = await call("context.fork", context="third", label="fork")
    fork = await call.context("fork")
    assert forked["blocks"] == 3 and await authors(call, fork.document.block_ids()[2]) == [
        *(("one", "amy", "default.amy.1"), (" two", "bo", "notes.amy.2")),
    ]


async def test_drift_that_cannot_go_says_why(call: Caller, make: Make, notes: Context) -> None:
    block = await make("x", role="user", status="done")
    for params, code in (
        ({"to": "nowhere", "blocks": [block]}, ErrorCode.CONTEXT_NOT_FOUND),
        ({"to": "default", "blocks": [block]}, ErrorCode.INVALID_PARAMS),
        ({"to": "notes", "context": "default"}, ErrorCode.INVALID_PARAMS),
        ({"to": "notes", "blocks": [await make("draft", role="user")]}, ErrorCode.INVALID_PARAMS),
    ):
        assert (await call.refused("drift.push", **params)).code == code
    await call("context.archive", context="notes")
    error = await call.refused("drift.push", to="notes", blocks=[block])
    assert error.code == ErrorCode.INVALID_TRANSITION
    (row,) = (await call("drift.list"))["drifts"]
    assert (row["state"], row["outcome"]) == ("refused", error.message)
    assert (await call.refused("drift.cancel", drift_id=row["drift_id"])).code == error.code


async def test_result_that_comes_back_from_a_fork_answers_no_call(call: Caller, make: Make) -> None:
    asked = await make("What is here?", role="user", status="done")
    about = {"tool_name": "shell", "tool_call_id": "c1", "input": {"command": "ls"}}
    said = {"parent_id": asked, "status": "done", "metadata": about}
    used = await make("ls", role="model", kind="tool_call", **said)
    result = {"parent_id": used, "status": "done", "metadata": {"tool_call_id": "c1"}}
    result_id = await make("a.md", role="tool", kind="tool_result", **result)
    tidy = (await call("context.fork", context="default", label="tidy"))["context_id"]
    await call("drift.push", to="default", blocks=[moved_block(result_id, tidy)])
    messages = [one["message"] for one in (await call("message.path"))["messages"]]
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "user"]
    read = [
        "[DRIFT] push from tidy, version 5, by amy",
        "[DRIFT] shell-writer tool_result\na.md",
    ]
    assert [one["text"] for one in messages[-1]["content"]] == read
    await call("context.fork", context="default", blocks={"first": asked, "last": result_id})
