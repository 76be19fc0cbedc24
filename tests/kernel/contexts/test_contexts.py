"""Contexts are renamed and archived, and introduce those who change them, and only those."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, OpenKernel


async def labels(kernel: Kernel, actor: Actor, **params: Any) -> list[str]:
    found = await kernel.call(actor, "context.list", params)
    return [one["label"] for one in found["contexts"]]


async def test_renamed_context_goes_by_its_new_label_and_its_id(
    kernel: Kernel, amy: Actor, open_kernel: Any
) -> None:
    made = await kernel.call(amy, "context.create", {"label": "notes"})
    block = (
        await kernel.call(
            amy,
            "block.create",
            {"context": "notes", "role": "user", "kind": "text", "content": "x"},
        )
    )["block_id"]
    context = await kernel.context("notes")
    done = await kernel.call(amy, "context.rename", {"context": "notes", "label": "ideas"})
    assert done["label"] == "ideas"
    assert done["context_id"] == made["context_id"]
    assert done["context_version"] == context.seq
    assert context.document.label == context.label == "ideas"
    same = await kernel.call(amy, "context.rename", {"context": "ideas", "label": "ideas"})
    assert same["context_version"] == done["context_version"]
    await kernel.close()
    again = await open_kernel()
    amy = again.open_session(again.owner, "test")
    assert await labels(again, amy) == ["default", "ideas"]
    for form in (block, f"ideas.amy.{block.split('.')[2]}"):
        assert (await again.call(amy, "block.read", {"block_id": form}))["content"] == "x"
    with raises(ErrorCode.CONTEXT_NOT_FOUND):
        await again.call(amy, "block.list", {"context": "notes"})
    assert (await again.context("ideas")).document.label == "ideas"


async def test_label_that_is_taken_or_cannot_be_one_changes_nothing(
    kernel: Kernel, amy: Actor
) -> None:
    wrong = [("notes", one) for one in ("taken", "default", "away", "Notes", "", "a.b")]
    for one in ("notes", "taken", "away"):
        await kernel.call(amy, "context.create", {"label": one})
    await kernel.call(amy, "context.archive", {"context": "away"})
    for context, label in (*wrong, ("default", "other")):
        seq = (await kernel.context(context)).seq
        with raises(ErrorCode.INVALID_PARAMS):
            await kernel.call(amy, "context.rename", {"context": context, "label": label})
        assert (await kernel.context(context)).seq == seq, label
    assert await labels(kernel, amy, archived=True) == ["default", "notes", "taken", "away"]


async def test_rename_to_one_label_at_once_succeeds_once(kernel: Kernel, amy: Actor) -> None:
    for number in range(4):
        await kernel.call(amy, "context.create", {"label": f"c{number}"})
    done = await asyncio.gather(
        *(
            kernel.call(amy, "context.rename", {"context": f"c{number}", "label": "best"})
            for number in range(4)
        ),
        kernel.call(amy, "context.create", {"label": "best"}),
        return_exceptions=True,
    )
    assert len([one for one in done if isinstance(one, dict)]) == 1
    assert (await labels(kernel, amy)).count("best") == 1


async def test_labels_may_be_swapped_and_given_anew_at_once(call: Caller, open_kernel: Any) -> None:
    for label in ("one", "two"):
        await call("context.create", label=label)
    ids = {label: (await call.context(label)).id for label in ("one", "two")}
    for context, label in ((ids["one"], "spare"), (ids["two"], "one"), (ids["one"], "two")):
        await call("context.rename", context=context, label=label)
    spare = await call("context.create", label="spare")
    expected = [ids["two"], ids["one"], spare["context_id"]]
    assert [(await call.context(label)).id for label in ("one", "two", "spare")] == expected
    await call.kernel.close()
    again = await open_kernel()
    assert [(await again.context(label)).id for label in ("one", "two", "spare")] == expected


async def test_renaming_and_archiving_at_once_keep_both(call: Caller, open_kernel: Any) -> None:
    await call("context.create", label="notes")
    context = (await call.context("notes")).id
    await asyncio.gather(
        call("context.rename", context=context, label="ideas"),
        call("context.archive", context=context),
    )
    await call.kernel.close()
    again = await open_kernel()
    row = again.contexts[context]
    assert row.label == "ideas"
    assert row.archived is not None


async def test_archived_context_is_hidden_and_nothing_else(
    kernel: Kernel, amy: Actor, open_kernel: Any
) -> None:
    await kernel.call(amy, "context.create", {"label": "old"})
    new = {"context": "old", "role": "user", "kind": "text", "content": "kept"}
    block = (await kernel.call(amy, "block.create", new))["block_id"]
    first = await kernel.call(amy, "context.archive", {"context": "old"})
    assert first["archived"]
    same = await kernel.call(amy, "context.archive", {"context": "old"})
    assert same == first
    with raises(ErrorCode.INVALID_PARAMS):
        await kernel.call(amy, "context.archive", {"context": "default"})
    await kernel.close()
    again = await open_kernel()
    amy = again.open_session(again.owner, "test")
    assert await labels(again, amy) == ["default"]
    assert await labels(again, amy, archived=True) == ["default", "old"]
    assert (await again.call(amy, "block.read", {"block_id": block}))["content"] == "kept"
    assert (await again.context("old")).document.archived == first["archived"]
    back = await again.call(amy, "context.archive", {"context": "old", "archived": False})
    assert "archived" not in back
    assert await labels(again, amy) == ["default", "old"]
    assert (await again.context("old")).document.archived is None


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
