"""Edits of a text: patches, and edits of what one has read.

A patch is applied whole or not at all. An edit finds what one has read wherever it is by now, or
says what stands there.
"""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make

TEXT = "".join(f"line {n}\n" for n in range(20))
PATCH = """--- a/file
+++ b/file
@@ -2,3 +2,3 @@
 line 1
-line 2
+line two
 line 3
@@ -16,3 +16,4 @@
 line 15
 line 16
+between
 line 17
"""
PATCHED = TEXT.replace("line 2\n", "line two\n").replace("line 16\n", "line 16\nbetween\n")


async def content(kernel: Kernel, actor: Actor, block: str) -> str:
    return str((await kernel.call(actor, "block.read", {"block_id": block}))["content"])


async def apply(kernel: Kernel, actor: Actor, block: str, **params: Any) -> dict[str, Any]:
    request = {"block_id": block, "patch": PATCH, **params}
    return await kernel.call(actor, "block.apply_patch", request)


async def test_patch_is_one_change_of_the_block(kernel: Kernel, amy: Actor, make: Make) -> None:
    block = await make(TEXT)
    done = await apply(kernel, amy, block)
    assert await content(kernel, amy, block) == PATCHED
    assert done == {"success": True, "version": 2, "context_version": done["context_version"]}
    await kernel.call(amy, "block.undo", {"block_id": block})
    assert await content(kernel, amy, block) == TEXT


@pytest.mark.parametrize("spoilt", [2, 16])
async def test_hunk_that_fails_leaves_the_state_vector_as_it_was(
    kernel: Kernel, context: Context, amy: Actor, make: Make, spoilt: int
) -> None:
    block = await make(TEXT.replace(f"line {spoilt}\n", "other\n"))
    before = context.document.state_vector()
    with raises(ErrorCode.PATCH_FAILED) as caught:
        await apply(kernel, amy, block)
    assert [one["hunk"] for one in caught.value.details["hunks"]] == [0 if spoilt == 2 else 1]
    dry = await apply(kernel, amy, block, dry_run=True)
    assert dry == {"success": False, "errors": caught.value.details["errors"]}
    assert context.document.state_vector() == before


async def test_apply_patch_keeps_concurrent_edits_beside_changed_characters(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    """A replica that has not seen the patch edits the patched line and every line about it."""
    block = await make(TEXT)
    document = (await kernel.context()).document
    replica = Document(document.client_id + 1)
    replica.apply_update(document.update_since())
    for at in (TEXT.index("line 2"), TEXT.index("line 1"), 0):
        replica.splice(block, at, 0, "<")
    theirs = replica.update_since(document.state_vector())
    await apply(kernel, amy, block)
    document.apply_update(theirs)
    expected = "<" + PATCHED.replace("line two", "<line two").replace("line 1\n", "<line 1\n")
    assert document.text(block) == expected


async def test_patch_that_is_or_makes_the_text_too_long_is_too_large(
    kernel: Kernel, context: Context, amy: Actor, make: Make
) -> None:
    most = 100
    update = {"splices_per_patch": most, "patch_code_points": 10_000}
    kernel.limits = kernel.limits.model_copy(update=update)
    long, short = await make("a\n" * (most + 1)), await make("a\nb\n")
    context.limits = kernel.limits.model_copy(update={"block_code_points": 2 * most + 3})

    def patch(places: int) -> str:
        header = f"@@ -1,{places} +1,{places} @@\n"
        return header + "-a\n" * places + "+b\n" * places

    size = kernel.limits.patch_code_points
    for block, sent, limit in (
        (short, PATCH + "\n" * size, size),
        (short, f"@@ -1,2 +1,3 @@\n a\n+{'x' * 2 * most}\n b\n", 2 * most + 3),
        (long, patch(most + 1), most),
    ):
        with raises(ErrorCode.TOO_LARGE) as caught:
            await apply(kernel, amy, block, patch=sent)
        assert caught.value.details["limit"] == limit
    await apply(kernel, amy, long, patch=patch(most))
    assert await content(kernel, amy, long) == "b\n" * most + "a\n"


async def test_empty_line_is_its_newline(kernel: Kernel, amy: Actor, bo: Actor, make: Make) -> None:
    block = await make("a\n\nb\n")
    insert = {"op": "insert", "line": 1, "content": "here"}
    request = {"block_id": block, "base_version": 1, "operations": [insert]}
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 0, "insert": "x\ny\n"})
    await kernel.call(amy, "block.edit", request)
    assert await content(kernel, amy, block) == "x\ny\na\nhere\n\nb\n"
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 11, "insert": "text"})
    with raises(ErrorCode.STALE_VERSION) as caught:
        await kernel.call(amy, "block.edit", request)
    assert caught.value.details["lines"] == ["here", "text"]


async def test_line_that_was_retyped_is_another_line(
    kernel: Kernel, call: Caller, bo: Actor, make: Make
) -> None:
    block = await make("one\ntwo\n")
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 0, "delete_count": 3})
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 0, "insert": "one"})
    change = {"op": "delete", "start_line": 0, "end_line": 1, "expected_text": "one"}
    with raises(ErrorCode.STALE_VERSION):
        await call("block.edit", block_id=block, base_version=1, operations=[change])
