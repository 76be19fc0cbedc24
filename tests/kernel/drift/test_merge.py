"""Merging a fork: what both have is merged, what is new is offered, and one undo takes it back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.types.records import Actor
from tests.kernel.drift.test_push_and_pull import authors, shown
from tests.kernel.kernel.calls import Caller, Make, OpenKernel

Edit = Callable[[Actor, str, str, str], Awaitable[None]]
"""Replaces a piece of a block's text that stands there once."""


@pytest.fixture
def edit(kernel: Kernel) -> Edit:
    async def replace(actor: Actor, block: str, old: str, new: str) -> None:
        text = (await kernel.call(actor, "block.read", {"block_id": block}))["content"]
        at = text.index(old)
        splice = {"offset": at, "delete_count": len(old), "insert": new}
        await kernel.call(actor, "block.splice", {"block_id": block, **splice})

    return replace


@pytest.fixture
async def one(make: Make) -> str:
    return await make("The red fox jumps over the lazy dog.\nAnd so on.\n", role="user")


@pytest.fixture
async def fork(call: Caller, one: str) -> Context:
    await call("block.status", block_id=one, status="done")
    await call("context.fork", context="default", label="tidy")
    return await call.context("tidy")


async def apart(call: Caller) -> tuple[int, int]:
    """By how many blocks the fork is ahead, and behind."""
    (fork,) = [one for one in (await call("context.list"))["contexts"] if one["label"] == "tidy"]
    return fork["ahead"], fork["behind"]


async def test_merge_keeps_what_both_sides_wrote_and_who_wrote_it(
    call: Caller, amy: Actor, bo: Actor, aria: Actor, one: str, fork: Context, edit: Edit
) -> None:
    there = moved_block(one, fork.id)
    await edit(bo, there, "red", "quick 😀 brown")
    await edit(aria, there, "And so on.\n", "And so on, and on.\n")
    await edit(amy, one, "lazy ", "")
    made = {"kind": "text", "parent_id": there, "status": "done"}
    new = (await call.kernel.call(aria, "block.create", {**made, "content": "New."}))["block_id"]
    preview = await call("drift.preview", source="tidy")
    assert await apart(call) == (2, 1)
    (change,) = preview["changes"]
    assert change["after"] == "The quick 😀 brown fox jumps over the dog.\nAnd so on, and on.\n"
    assert [one["source_block"] for one in preview["offers"]] == [new]
    context, before = await call.context(), shown(await call.context())
    merged = await call("drift.merge", source="tidy", plan=preview["plan"])
    assert merged["changed"] == [one] and len(merged["blocks"]) == 1
    after = [change["after"], "1 block changed, 1 block added", "New."]
    assert [text for _, text in shown(context)] == after
    assert await authors(call, one) == [
        ("The ", "amy", None),
        ("quick 😀 brown", "bo", "tidy.amy.1"),
        (" fox jumps over the dog.\n", "amy", None),
        ("And so on, and on.\n", "aria", "tidy.amy.1"),
    ]
    assert await authors(call, merged["blocks"][0]) == [("New.", "aria", "tidy.aria.1")]
    await call("block.undo", context="default")
    assert shown(context) == before
    await call("block.redo", context="default")
    assert [text for _, text in shown(context)] == after
    assert (await authors(call, one))[1][:2] == ("quick 😀 brown", "bo")
    assert await apart(call) == (0, 0)


async def test_merge_again_brings_only_what_is_new(
    call: Caller, amy: Actor, bo: Actor, one: str, fork: Context, edit: Edit
) -> None:
    there = moved_block(one, fork.id)
    created = {"context": "tidy", "kind": "text", "status": "done", "content": "New. Yes."}
    new = (await call.kernel.call(bo, "block.create", created))["block_id"]
    await edit(bo, there, "red", "brown")
    first = await call("drift.merge", source="tidy")
    (copy,) = first["blocks"]
    assert (await call("drift.preview", source="tidy"))["changes"] == []
    await edit(amy, copy, "New", "Old")
    await edit(bo, new, "Yes", "No")
    await edit(amy, one, "lazy", "busy")
    await edit(bo, there, "jumps", "leaps")
    second = await call("drift.merge", source="tidy", conclude=True)
    assert second["blocks"] == [] and set(second["changed"]) == {one, copy}
    context = await call.context()
    texts = [
        "The brown fox leaps over the busy dog.\nAnd so on.\n",
        "1 block changed, 1 block added",
    ]
    assert [text for _, text in shown(context)] == [*texts, "Old. No.", "2 blocks changed"]
    assert fork.row.archived is not None
    await call("block.undo", context="default")
    await call("block.undo", context="default")
    undone = (await call("drift.preview", source="tidy"))["changes"]
    assert [one["block_id"] for one in undone] == [one, copy]


async def test_conflict_is_merged_only_as_somebody_says(
    call: Caller, amy: Actor, bo: Actor, one: str, fork: Context, edit: Edit
) -> None:
    there = moved_block(one, fork.id)
    await edit(bo, there, "red", "brown")
    await edit(bo, there, "on.", "forth.")
    await edit(amy, one, "red", "grey")
    preview = await call("drift.preview", source="tidy")
    (conflict,) = preview["changes"][0]["conflicts"]
    assert (conflict["base"], conflict["ours"], conflict["theirs"]) == ("red", "grey", "brown")
    assert preview["changes"][0]["after"][conflict["start"] : conflict["end"]] == "grey"
    error = await call.refused("drift.merge", source="tidy")
    assert (error.code, error.details["conflicts"]) == (ErrorCode.MERGE_CONFLICT, 1)
    cases: list[tuple[dict[str, Any], str, tuple[str, str]]] = [
        ({"prefer": "ours"}, "grey", ("grey", "amy")),
        ({"resolve": {0: {"side": "theirs"}}}, "brown", ("brown", "bo")),
        ({"prefer": "both"}, "grey brown", ("brown", "bo")),
        ({"resolve": {0: {"text": "green 😀"}}}, "green 😀", ("en 😀", "amy")),
    ]
    for params, text, wrote in cases:
        await call("drift.merge", source="tidy", **params)
        said = (await call("block.read", block_id=one))["content"]
        assert said == f"The {text} fox jumps over the lazy dog.\nAnd so forth.\n"
        assert wrote in [run[:2] for run in await authors(call, one)]
        await call("block.undo", context="default")


async def test_merge_of_another_plan_than_was_shown_is_refused(
    call: Caller, amy: Actor, bo: Actor, one: str, fork: Context, edit: Edit
) -> None:
    there = moved_block(one, fork.id)
    await edit(bo, there, "red", "brown")
    plan = (await call("drift.preview", source="tidy"))["plan"]
    await edit(amy, one, "And so on", "And")
    assert (await call("drift.preview", source="tidy"))["plan"] == plan
    await edit(bo, there, "dog", "cat")
    error = await call.refused("drift.merge", source="tidy", plan=plan)
    assert error.code == ErrorCode.STALE_VERSION
    assert (await call.refused("drift.merge", source="default")).code == ErrorCode.INVALID_PARAMS
    await call("drift.merge", source="tidy")
    assert (await call.refused("drift.merge", source="tidy")).code == ErrorCode.INVALID_PARAMS


async def test_merge_is_the_same_after_a_restart(
    kernel: Kernel,
    call: Caller,
    bo: Actor,
    one: str,
    fork: Context,
    edit: Edit,
    open_kernel: OpenKernel,
) -> None:
    await edit(bo, moved_block(one, fork.id), "red", "brown")
    await call("drift.merge", source="tidy")
    wrote = await authors(call, one)
    await kernel.close()
    again = await open_kernel()
    call = Caller(again, again.open_session(again.owner, "test"))
    assert await authors(call, one) == wrote
    assert (await call("drift.preview", source="tidy"))["changes"] == []
    await call("block.undo", context="default")
    assert (await call("block.read", block_id=one))["content"].startswith("The red fox")


async def test_conflict_that_stays_as_it_is_here_is_not_asked_about_again(
    call: Caller, amy: Actor, one: str, fork: Context, edit: Edit
) -> None:
    await edit(amy, one, "red", "old")
    await edit(amy, moved_block(one, fork.id), "red", "young")
    context = await call.context()
    merged = await call("drift.merge", source="tidy", prefer="ours")
    assert merged["changed"] == [] and merged["blocks"] == []
    assert context.document.text(one).startswith("The old fox")
    preview = await call("drift.preview", source="tidy")
    assert (preview["changes"], preview["offers"]) == ([], [])
    await call("block.undo", context="default")
    assert (await call("drift.preview", source="tidy"))["conflicts"] == 1


async def test_changes_of_a_block_that_was_cut_out_are_offered_as_a_new_one(
    call: Caller, amy: Actor, one: str, fork: Context, edit: Edit
) -> None:
    there = moved_block(one, fork.id)
    await edit(amy, there, "red", "brown")
    await call("block.exclude", block_id=one, excluded=True, cut_out=True)
    preview = await call("drift.preview", source="tidy")
    assert preview["changes"] == []
    assert [one["source_block"] for one in preview["offers"]] == [there]
    merged = await call("drift.merge", source="tidy")
    context = await call.context()
    assert context.document.text(merged["blocks"][0]).startswith("The brown fox")
    assert context.document.text(one).startswith("The red fox")
