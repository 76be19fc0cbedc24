"""The layout of a context follows its document, also while it is read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from antiphon_kernel.contexts import ContextLayout
from tests.bench.filled import filled


async def test_layout_that_is_loaded_while_somebody_writes_is_up_to_date(tmp_path: Path) -> None:
    async with filled(tmp_path) as kernel:
        first, *_, last = await kernel.add_blocks(3_000, "Hello")
        context = kernel.context
        loading = asyncio.create_task(context.current_layout())
        await asyncio.sleep(0)
        for block in (first, last):
            await kernel.call("block.splice", block_id=block, offset=0, insert="Well. ")
        await loading
        assert context.layout.arranged() == ContextLayout(context.document).arranged()
        texts = [turn.items[1].block.text for turn in context.layout.arranged().turns]
        assert texts[0] == texts[-1] == "Well. Hello"
