"""The page of a context: the same from an open context as from disk, and never out of date."""

from __future__ import annotations

import shutil
import sqlite3
from asyncio import gather
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts.opening.page import PAGE_BLOCKS, PAGE_CHARACTERS
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, OpenKernel

COUNT = 2 * PAGE_BLOCKS


@pytest.fixture
async def blocks(call: Caller) -> list[str]:
    """The blocks of the default context, which are more than a page."""
    made = await gather(
        *(call("block.create", kind="text", content=f"# {n} 😀") for n in range(COUNT))
    )
    return [str(one["block_id"]) for one in made]


def execute(data: Path, sql: str) -> int:
    with sqlite3.connect(data / "journal.db") as database:
        return database.execute(sql).rowcount


async def page_of(kernel: Kernel, **params: Any) -> dict[str, Any]:
    actor = kernel.open_session(kernel.owner, "test")
    return await kernel.call(actor, "context.page", params)


async def test_page_is_the_last_blocks_or_as_many_before_a_block_as_behind(
    blocks: list[str], call: Caller
) -> None:
    page = await call("context.page")
    assert [one["block_id"] for one in page["blocks"]] == blocks[-PAGE_BLOCKS:]
    assert [one["content"] for one in page["blocks"]][-1] == f"# {COUNT - 1} 😀"
    assert (page["before"], page["count"]) == (COUNT - PAGE_BLOCKS, COUNT)
    assert [one["username"] for one in page["members"]] == ["amy"]
    middle = blocks[COUNT // 2]
    page = await call("context.page", around=middle)
    ids = [one["block_id"] for one in page["blocks"]]
    assert ids == blocks[page["before"] : page["before"] + PAGE_BLOCKS]
    assert ids.index(middle) == PAGE_BLOCKS // 2
    first = await call("context.page", around=blocks[0])
    assert [one["block_id"] for one in first["blocks"]] == blocks[: PAGE_BLOCKS // 2]


async def test_page_with_a_long_text_has_fewer_blocks_and_no_cut_text(call: Caller) -> None:
    for number in range(3):
        await call("block.create", kind="text", content=f"{number} " * 100)
    text = "long " * (PAGE_CHARACTERS // 5 - 100)
    await call("block.create", kind="text", content=text)
    page = await call("context.page")
    assert page["blocks"][-1]["content"] == text
    assert 1 < len(page["blocks"]) < 4
    await call("block.create", kind="text", content=text)
    page = await call("context.page")
    assert [one["content"] for one in page["blocks"]] == [text]


@pytest.mark.sqlite
async def test_page_of_a_closed_context_is_read_without_opening_it(
    blocks: list[str], kernel: Kernel, data: Path, open_kernel: OpenKernel
) -> None:
    before = await page_of(kernel)
    await kernel.close()
    # Whatever opens the context from now on fails.
    assert execute(data, "UPDATE ops SET changes = x'ff' WHERE seq = 5") == 1
    execute(data, "DELETE FROM snapshots")
    reopened = await open_kernel()
    assert await page_of(reopened) == before
    assert await page_of(reopened, around=blocks[-2]) == before
    with pytest.raises(AntiphonError, match="damaged"):
        await page_of(reopened, around=blocks[0])
    with pytest.raises(AntiphonError) as known:
        await page_of(reopened)
    assert known.value.code is ErrorCode.STORAGE_FAILED


async def test_page_that_is_older_than_the_context_is_not_shown(
    blocks: list[str], kernel: Kernel, data: Path, open_kernel: OpenKernel
) -> None:
    await kernel.close()
    second = await open_kernel()
    amy = second.open_session(second.owner, "test")
    change = {"block_id": blocks[-1], "offset": 0, "delete_count": 1, "insert": "new"}
    await second.call(amy, "block.splice", change)
    now = await page_of(second)
    crashed = data.with_name("crashed")
    shutil.copytree(data, crashed)
    await second.close()
    shutil.rmtree(data)
    crashed.rename(data)
    third = await open_kernel()
    assert await page_of(third) == now
    assert now["blocks"][-1]["content"].startswith("new")


@pytest.mark.sqlite
async def test_damaged_page_is_left_out_and_the_context_opened(
    blocks: list[str], kernel: Kernel, data: Path, open_kernel: OpenKernel
) -> None:
    assert blocks
    before = await page_of(kernel)
    await kernel.close()
    for damage in (
        "UPDATE pages SET page = CAST(replace(CAST(page AS TEXT), '😀', '👻') AS BLOB)",
        "UPDATE pages SET page = 'text'",
        "UPDATE pages SET format = 99",
        "UPDATE pages SET digest = x'00'",
        "DELETE FROM pages",
    ):
        assert execute(data, damage) == 1
        kernel = await open_kernel()
        assert await page_of(kernel) == before, damage
        await kernel.close()


async def test_stranger_gets_no_page(call: Caller, kernel: Kernel, amy: Actor) -> None:
    await call("block.create", kind="text", content="x")
    visitor = kernel.open_session(await kernel.principal("vic"), "test")
    await kernel.call(amy, "kernel.role", {"principal": "vic", "role": "viewer"})
    viewer = kernel.open_session(await kernel.principal("vic"), "test")
    assert (await kernel.call(viewer, "context.page"))["count"] == 1
    await kernel.call(amy, "kernel.kick", {"principal": "vic"})
    for gone in (visitor, viewer):
        with pytest.raises(AntiphonError) as caught:
            await kernel.call(gone, "context.page")
        assert caught.value.code is ErrorCode.PERMISSION_DENIED
