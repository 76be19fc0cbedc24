"""Every version of a block can be listed, read and brought back; who wrote each character."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make


async def content(kernel: Kernel, actor: Actor, block: str, version: int | None = None) -> str:
    asked: dict[str, Any] = {} if version is None else {"version": version}
    return str((await kernel.call(actor, "block.read", {"block_id": block, **asked}))["content"])


async def test_context_history_names_changed_blocks_in_pages(
    kernel: Kernel, call: Caller, bo: Actor, make: Make
) -> None:
    first, second = await make("one\n"), await make("two\n")
    begun = (await call("context.history"))["versions"][-1]["version"]
    await kernel.call(bo, "block.splice", {"block_id": first, "offset": 0, "insert": "X"})
    await call("block.append", block_id=second, text="more")
    seen, after = [], begun
    while True:
        page = await call("context.history", after_version=after, limit=1)
        seen += page["versions"]
        if not page["truncated"]:
            break
        after = page["next"]
    assert [(one["version"], one["username"], one["operation"]) for one in seen] == [
        (begun + 1, "bo", "splice"),
        (begun + 2, "amy", "append"),
    ]
    assert [one["blocks"] for one in seen] == [{first: 2}, {second: 2}]
    assert (await call("context.history", last=2))["versions"] == seen


async def test_long_history_comes_in_pages(call: Caller, make: Make) -> None:
    block = await make("")
    for letter in "abcdefg":
        await call("block.append", block_id=block, text=letter)
    seen, after = [], 0
    while True:
        page = await call("block.history", block_id=block, limit=3, after_version=after)
        seen += [one["version"] for one in page["versions"]]
        if not page["truncated"]:
            break
        after = page["next"]
    assert seen == list(range(1, 9))


async def test_restoring_can_be_undone_and_changes_only_what_differs(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("one\ntwo\nthree\n")
    await kernel.call(
        bo, "block.splice", {"block_id": block, "offset": 4, "delete_count": 3, "insert": "ZWEI"}
    )
    await kernel.call(amy, "block.restore", {"block_id": block, "version": 1})
    assert await content(kernel, amy, block) == "one\ntwo\nthree\n"
    runs = (await kernel.call(amy, "block.blame", {"block_id": block}))["runs"]
    assert [(run["start"], run["end"], run["version"]) for run in runs] == [
        (0, 4, 1),
        (4, 7, 3),
        (7, 14, 1),
    ]
    await kernel.call(amy, "block.undo", {"block_id": block})
    assert await content(kernel, amy, block) == "one\nZWEI\nthree\n"


async def test_restoring_what_is_there_commits_nothing(call: Caller, make: Make) -> None:
    block = await make("one\n")
    restored = await call("block.restore", block_id=block, version=1)
    assert restored["version"] == 1


async def test_reader_that_breaks_off_takes_nothing_from_another(
    context: Context, amy: Actor, make: Make
) -> None:
    block = await make("before")
    first, second = (asyncio.create_task(context.history(block)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait((second,))
    assert not first.done()
    context.write(
        amy, "splice", lambda: context.document.splice(block, 0, 6, "after"), blocks=[block]
    )
    assert (await first).text() == "after"


async def test_undo_preview_says_how_much_and_changes_nothing(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make("one two\nthree")
    edit = {"block_id": block, "offset": 4, "delete_count": 3, "insert": "2\n"}
    await kernel.call(amy, "block.splice", edit)
    previewed = await kernel.call(amy, "block.undo", {"block_id": block, "preview": True})
    assert previewed["removed"] == {"characters": 2, "words": 1, "lines": 1}
    assert previewed["restored"] == {"characters": 3, "words": 1, "lines": 1}
    assert (previewed["undone"], previewed["versions"]) == ([block], {})
    assert await content(kernel, amy, block) == "one 2\n\nthree"
    undone = await kernel.call(amy, "block.undo", {"block_id": block})
    assert {**undone, "versions": {}, "context_version": 0} == {**previewed, "context_version": 0}
    assert await content(kernel, amy, block) == "one two\nthree"
