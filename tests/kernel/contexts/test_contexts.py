"""Contexts are renamed and archived; nobody loses anything by it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller


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


@pytest.mark.parametrize(
    ("context", "label"),
    [
        ("notes", "taken"),
        ("notes", "default"),
        ("notes", "away"),
        ("notes", "Notes"),
        ("notes", ""),
        ("notes", "a.b"),
        ("default", "other"),
    ],
)
async def test_label_that_is_taken_or_cannot_be_one_changes_nothing(
    kernel: Kernel, amy: Actor, context: str, label: str
) -> None:
    for one in ("notes", "taken", "away"):
        await kernel.call(amy, "context.create", {"label": one})
    await kernel.call(amy, "context.archive", {"context": "away"})
    seq = (await kernel.context(context)).seq
    with raises(ErrorCode.INVALID_PARAMS):
        await kernel.call(amy, "context.rename", {"context": context, "label": label})
    assert (await kernel.context(context)).seq == seq
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
