"""Durability: a commit that failed leaves nothing, and is not acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make
from tests.waiting import PATIENCE


async def test_models_block_that_was_never_written_to_is_not_left_pending(
    kernel: Kernel, aria: Actor, make: Make, open_kernel: Any
) -> None:
    made = await kernel.call(aria, "block.create", {"kind": "text", "parent_id": await make()})
    await kernel.close()
    context = await (await open_kernel()).context()
    assert context.document.header(made["block_id"]).stop_reason == "interrupted"


async def test_persons_draft_keeps_its_status_over_a_restart(
    kernel: Kernel, amy: Actor, make: Any, open_kernel: Any
) -> None:
    block = await make("draft")
    await kernel.close_session(amy)
    await kernel.close()
    context = await (await open_kernel()).context()
    assert context.document.header(block).status == "running"


@pytest.mark.sqlite
async def test_failed_commit_is_told_and_the_context_is_read_again_from_disk(
    kernel: Kernel, context: Context, call: Caller, make: Any, data: Path
) -> None:
    block = await make("safe", status="done")
    stopped: list[AntiphonError] = []
    context.failed.listen(stopped.append)
    async with broken_disk(data):
        calls = [call("block.splice", block_id=block, offset=0, insert="lost ") for _ in range(5)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {one.code for one in outcomes if isinstance(one, AntiphonError)} == {
        ErrorCode.STORAGE_FAILED
    }
    assert len(outcomes) == 5
    assert len(stopped) == 1
    found = await call("block.read", block_id=block)
    assert (found["content"], found["version"]) == ("safe", 1)
    await call("block.splice", block_id=block, offset=0, insert="very ")
    assert (await kernel.context()).document.text(block) == "very safe"


@asynccontextmanager
async def broken_disk(data: Path) -> AsyncIterator[None]:
    """No commit succeeds inside."""
    async with aiosqlite.connect(data / "journal.db") as rival:
        await rival.execute(
            "CREATE TRIGGER full BEFORE INSERT ON ops BEGIN SELECT raise(ABORT, 'disk full'); END"
        )
        await rival.commit()
        yield
        await rival.execute("DROP TRIGGER full")
        await rival.commit()


@pytest.mark.sqlite
async def test_stream_that_lost_text_does_not_go_on(kernel: Kernel, data: Path) -> None:
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.SHELL), "turn")
    made = await kernel.call(aria, "block.create", {"kind": "text"})
    line = {"block_id": made["block_id"], "text": "a line\n", "stream": True}
    await kernel.call(aria, "block.append", line)
    await (await kernel.context()).wait_persisted()
    async with broken_disk(data):
        await kernel.call(aria, "block.append", line)
        with pytest.raises(AntiphonError):
            await (await kernel.context()).wait_persisted()
    with raises(ErrorCode.INVALID_TRANSITION):
        await kernel.call(aria, "block.append", line)
    context = await kernel.context()
    assert context.document.text(made["block_id"]) == "a line\n"
    assert context.document.header(made["block_id"]).stop_reason == "interrupted"


@pytest.mark.sqlite
async def test_repeated_call_is_not_acknowledged_before_the_first_is_on_disk(
    call: Caller, make: Any, data: Path
) -> None:
    draft = await make("draft")
    submit = {"block_id": draft, "status": "done"}
    async with broken_disk(data):
        outcomes = await asyncio.gather(
            *(call("block.status", **submit) for _ in range(2)), return_exceptions=True
        )
    assert all(isinstance(one, AntiphonError) for one in outcomes)


async def test_concurrent_calls_answer_their_own_versions(call: Caller, make: Any) -> None:
    block = await make("x", status="done")
    insert = {"block_id": block, "offset": 0, "insert": "y"}
    answers = await asyncio.gather(*(call("block.splice", **insert) for _ in range(5)))
    assert [one["version"] for one in answers] == [2, 3, 4, 5, 6]


@pytest.mark.sqlite
async def test_commit_built_on_a_lost_one_is_refused_even_after_reading_again(
    kernel: Kernel, amy: Actor, make: Any, data: Path
) -> None:
    block = await make("safe", status="done")
    stale = await kernel.context()

    def insert() -> None:
        stale.document.splice(block, 0, 0, "lost ")

    async with broken_disk(data):
        first = stale.write(amy, "splice", insert, blocks=[block])
        await asyncio.wait([first.on_disk])
        second = (
            stale.write(amy, "splice", insert, blocks=[block])
            if not first.on_disk.exception()
            else None
        )
        assert second is None
    fresh = await kernel.context()
    assert fresh is not stale
    with pytest.raises(AntiphonError):
        stale.write(amy, "splice", insert, blocks=[block])
    assert fresh.document.text(block) == "safe"


async def test_closed_kernel_takes_no_calls(kernel: Kernel, call: Caller) -> None:
    await kernel.close()
    with raises(ErrorCode.NO_KERNEL):
        await call("block.list")


@pytest.mark.sqlite
async def test_call_under_way_at_close_is_not_acknowledged(
    kernel: Kernel, context: Context, amy: Actor, make: Make
) -> None:
    block = await make("text")
    await kernel.close()
    with raises(ErrorCode.NO_KERNEL):
        await context.append(amy, block, " lost").saved()
    with raises(ErrorCode.NO_KERNEL):
        await context.journal.changes(block=block)
    with raises(ErrorCode.NO_KERNEL):
        await asyncio.wait_for(kernel.contexts.create("late", amy, asker=amy), PATIENCE)


async def test_change_that_breaks_off_half_way_leaves_nothing_behind(
    kernel: Kernel, context: Context, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("kept")

    def break_off() -> None:
        context.document.splice(block, 0, 4, "lost")
        raise OverflowError("half-way")

    with pytest.raises(OverflowError):
        context.write(bo, "splice", break_off, blocks=[block])
    with raises(ErrorCode.STORAGE_FAILED):
        context.write(bo, "splice", lambda: None, blocks=[block])

    again = {"block_id": block, "offset": 4, "insert": " and said"}
    assert (await kernel.call(bo, "block.splice", again))["version"] == 2
    assert (await kernel.call(bo, "block.read", {"block_id": block}))["content"] == "kept and said"
    assert await kernel.context() is not context


@pytest.mark.parametrize(
    ("tool", "params"),
    [("block.undo", {}), ("block.restore", {"version": 1})],
)
async def test_undo_that_breaks_off_half_way_leaves_nothing_behind(
    kernel: Kernel, context: Context, bo: Actor, make: Make, tool: str, params: dict[str, Any]
) -> None:
    block = await make("kept", status="done")
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 4, "insert": " and said"})
    whole = Document.apply_update

    def apply_and_break_off(document: Document, update: bytes, origin: object) -> None:
        whole(document, update, origin)
        raise OverflowError("half-way")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Document, "apply_update", apply_and_break_off)
        with pytest.raises(OverflowError):
            await kernel.call(bo, tool, {"block_id": block, **params})
    assert (await kernel.call(bo, "block.read", {"block_id": block}))["content"] == "kept and said"
    assert await kernel.context() is not context
