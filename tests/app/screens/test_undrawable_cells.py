"""No content ends the app: a cell that cannot be drawn says so, and the others are drawn."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from antiphon.render import cell_renderer
from antiphon_kernel.text.fractional_index import key_between
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.app.opened import World, opened, world


async def damaged_call(here: World, stored: str) -> str:
    """A tool call without text whose input no tool writes, as an earlier version let it in."""
    context = await here.context()
    document, author = context.document, here.me.principal.id
    header = BlockHeader(
        str(context.next_block_id(author)),
        BlockKind.TOOL_CALL,
        Role.TOOL,
        Status.DONE,
        order=key_between(document.header(document.block_ids()[-1]).order, None),
        created="2026-01-01T00:00:00.000Z",
        author=author,
        tool_name="shell",
        input=stored,
    )
    create = partial(document.create_block, header)
    await context.write(here.me, "test", create, blocks=()).saved()
    return header.id


DAMAGED = ("[" * 2_000, '{"command":' * 300, '{"command": "\\ud800"}', "{")


async def test_tool_calls_with_damaged_input_are_drawn_and_cannot_be_run_again(
    here: World,
) -> None:
    await here.cell("the cell above")
    for stored in DAMAGED:
        await damaged_call(here, stored)
    await here.cell("the cell below")
    async with opened(here, size=(100, 100)) as there:
        await there.sees("the cell above")
        await there.sees("the cell below")
        await there.press("up")
        for stored in reversed(DAMAGED):
            assert there.shows(f"▪ shell {stored[:8]}")
            there.screen.hint("-")
            await there.press("up", "enter")
            await there.hint("This call has no command that could be run again.")


async def test_cell_that_cannot_be_drawn_says_so_and_the_app_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(cell_renderer, "render_tool_call", fail)
    async with world(tmp_path) as here:
        await here.cell("the cell above")
        block = await damaged_call(here, "{}")
        await here.cell("the cell below")
        async with opened(here, size=(100, 70)) as there:
            await there.sees("✗ This cell cannot be drawn (RecursionError)")
            assert there.shows("the cell above")
            assert there.shows("the cell below")
            await there.press("up", "up", "up", "down")
            await there.cell("a new cell")
            monkeypatch.undo()
            await here.call("block.splice", block_id=block, offset=0, insert="drawn again")
            await there.sees("drawn again")
    assert {one.getMessage() for one in caplog.records if one.exc_info} == {
        f"block {block} cannot be drawn"
    }
