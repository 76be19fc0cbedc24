"""The page of a context: neighbouring blocks with whole texts."""

from __future__ import annotations

from asyncio import gather

import pytest

from antiphon_kernel.contexts.opening.page import PAGE_BLOCKS, PAGE_CHARACTERS
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller

COUNT = 2 * PAGE_BLOCKS


@pytest.fixture
async def blocks(call: Caller) -> list[str]:
    """The blocks of the default context, which are more than a page."""
    made = await gather(
        *(call("block.create", kind="text", content=f"# {n} 😀") for n in range(COUNT))
    )
    return [str(one["block_id"]) for one in made]


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
