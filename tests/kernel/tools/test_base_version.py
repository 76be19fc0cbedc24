"""An edit of what one has read finds it wherever it is by now, or says what stands there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, OpenKernel


class Letters:
    """Characters that are all different, so that a string says which characters it is."""

    def __init__(self) -> None:
        self.next = 0x4E00

    def take(self, count: int) -> str:
        self.next += count
        return "".join(map(chr, range(self.next - count, self.next)))


async def read(kernel: Kernel, actor: Actor, block: str, **params: Any) -> dict[str, Any]:
    return await kernel.call(actor, "block.read", {"block_id": block, **params})


async def disturb(kernel: Kernel, bo: Actor, block: str, rng: random.Random, new: Letters) -> None:
    """Somebody else types, deletes, joins lines, splits them, undoes."""
    text = (await read(kernel, bo, block))["content"]
    act = rng.random()
    if act < 0.2:
        try:
            await kernel.call(bo, rng.choice(["block.undo", "block.redo"]), {"block_id": block})
        except AntiphonError as error:
            if error.code not in (ErrorCode.NOTHING_TO_UNDO, ErrorCode.NOTHING_TO_REDO):
                raise
        return
    offset = rng.randint(0, len(text))
    count = rng.randint(0, min(3, len(text) - offset)) if act < 0.6 else 0
    pieces = [new.take(1), "\n", new.take(2) + "\n", ""]
    params = {"offset": offset, "delete_count": count, "insert": rng.choice(pieces)}
    await kernel.call(bo, "block.splice", {"block_id": block, **params})


async def refusal(
    kernel: Kernel, actor: Actor, tool: str, params: dict[str, Any]
) -> AntiphonError | None:
    try:
        await kernel.call(actor, tool, params)
    except AntiphonError as error:
        return error
    return None


def place_now(lines: list[str], start: int, end: int, now: str) -> int | None:
    """The line at which these lines stand now; None if they do not stand there as they were."""
    wanted = lines[start:end]
    found = now.split("\n")
    for at in range(len(found)):
        if found[at : at + len(wanted)] == wanted:
            return at
    return None


@pytest.mark.parametrize("seed", range(60))
async def test_right_line_or_a_refusal_with_the_fresh_lines(
    open_kernel: OpenKernel, seed: int
) -> None:
    rng, new = random.Random(seed), Letters()
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    bo = kernel.open_session(await kernel.principal("bo"), "test")
    lines = [new.take(rng.randint(1, 3)) for _ in range(6)]
    made = await kernel.call(
        amy, "block.create", {"kind": "file", "content": "\n".join([*lines, ""])}
    )
    block, version = made["block_id"], made["version"]
    for _ in range(rng.randint(1, 8)):
        await disturb(kernel, bo, block, rng, new)
    if seed % 3 == 0:
        await kernel.close()
        kernel = await open_kernel()
        amy = kernel.open_session(kernel.owner, "test")
    before = (await read(kernel, amy, block))["content"]
    start = rng.randint(0, 5)
    end = rng.randint(start + 1, min(start + 2, 6))
    mark = new.take(3)
    change = {"op": "replace", "start_line": start, "end_line": end, "content": mark}
    at = place_now(lines, start, end, before)
    params = {"block_id": block, "base_version": version, "operations": [change]}
    error = await refusal(kernel, amy, "block.edit", params)
    if error is not None:
        assert error.code is ErrorCode.STALE_VERSION and at is None
        shown = before.split("\n")[error.details["start_line"] : error.details["end_line"]]
        assert error.details["lines"] == shown
        assert error.details["version"] == (await read(kernel, amy, block))["version"]
        assert (await read(kernel, amy, block))["content"] == before
        return
    assert at is not None
    expected = before.split("\n")
    expected[at : at + end - start] = [mark]
    assert (await read(kernel, amy, block))["content"] == "\n".join(expected)


@pytest.mark.parametrize("seed", range(40))
async def test_splice_deletes_untouched_text_or_nothing(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, seed: int
) -> None:
    rng, new = random.Random(seed), Letters()
    base = new.take(12)
    block = await make(base)
    for _ in range(rng.randint(1, 5)):
        await disturb(kernel, bo, block, rng, new)
    before = (await read(kernel, amy, block))["content"]
    offset = rng.randint(0, 11)
    gone = base[offset : offset + rng.randint(1, 2)]
    mark = new.take(2)
    splice = {"offset": offset, "delete_count": len(gone), "insert": mark, "base_version": 1}
    error = await refusal(kernel, amy, "block.splice", {"block_id": block, **splice})
    if error is not None:
        assert error.code is ErrorCode.STALE_VERSION and gone not in before
        assert (await read(kernel, amy, block))["content"] == before
        return
    assert (await read(kernel, amy, block))["content"] == before.replace(gone, mark)


async def test_insertion_at_earlier_version_stands_after_insertions_of_others(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("ab")
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 1, "insert": "XX"})
    splice = {"block_id": block, "offset": 1, "insert": "me", "base_version": 1}
    await kernel.call(amy, "block.splice", splice)
    assert (await read(kernel, amy, block))["content"] == "aXXmeb"
    end = {"block_id": block, "offset": 2, "insert": "end", "base_version": 1}
    await kernel.call(bo, "block.append", {"block_id": block, "text": "YY"})
    await kernel.call(amy, "block.splice", end)
    assert (await read(kernel, amy, block))["content"] == "aXXmebYYend"


async def test_enter_at_the_end_of_a_line_does_not_make_it_stale(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("one\ntwo\n")
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 3, "insert": "\n"})
    change = {"op": "replace", "start_line": 0, "end_line": 1, "content": "ONE"}
    await kernel.call(
        amy, "block.edit", {"block_id": block, "base_version": 1, "operations": [change]}
    )
    assert (await read(kernel, amy, block))["content"] == "ONE\n\ntwo\n"


async def test_empty_line_is_its_newline(kernel: Kernel, amy: Actor, bo: Actor, make: Make) -> None:
    block = await make("a\n\nb\n")
    insert = {"op": "insert", "line": 1, "content": "here"}
    request = {"block_id": block, "base_version": 1, "operations": [insert]}
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 0, "insert": "x\ny\n"})
    await kernel.call(amy, "block.edit", request)
    assert (await read(kernel, amy, block))["content"] == "x\ny\na\nhere\n\nb\n"
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


@pytest.mark.parametrize("version", [0, -1, 2])
async def test_version_that_never_was_is_refused(call: Caller, make: Make, version: int) -> None:
    block = await make("one\n")
    for tool, params in (
        ("block.edit", {"operations": [], "base_version": version}),
        ("block.splice", {"offset": 0, "base_version": version}),
        ("block.read", {"version": version}),
    ):
        with raises(ErrorCode.INVALID_PARAMS) as caught:
            await call(tool, block_id=block, **params)
        assert caught.value.details["version"] == 1
