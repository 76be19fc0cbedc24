"""Bounds on the memory that is kept of each block, beside its text."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Awaitable

from antiphon_kernel.conversation import ContextLayout
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.validation import LazyItemIndex
from tests.kernel.document.structured import AMY, CONTEXT, HEADER, founded

BLOCKS = 600
MODEL = "0" * 31 + "b"


def written() -> Document:
    """Return prompts, each with an answer by a model."""
    document = founded()
    with document.transaction(None):
        for number in range(BLOCKS):
            prompt, answer = f"{CONTEXT}.{AMY}.{number}", f"{CONTEXT}.{MODEL}.{number}"
            header = HEADER._replace(
                id=prompt,
                order=f"{number:05}",
                created="2026-01-01T00:00:00.000Z",
                status=Status.DONE,
            )
            if number % 2:
                prompt = f"{CONTEXT}.{AMY}.{number - 1}"
                header = header._replace(id=answer, author=MODEL, role=Role.MODEL, parent=prompt)
            document.create_block(header, "text")
    return document


async def held_of(doing: Awaitable[object]) -> float:
    """Return the bytes for each block that are held of what it makes."""
    gc.collect()
    tracemalloc.start()
    try:
        made = await doing
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        del made
    finally:
        tracemalloc.stop()
    return held / BLOCKS


async def test_layout_takes_few_bytes_of_each_block() -> None:
    layout = ContextLayout(written())
    assert await held_of(layout.load()) < 960
    assert await held_of(layout.prepare(MODEL, is_plain=False)) < 680


async def test_index_of_items_takes_few_bytes_of_each_block() -> None:
    assert await held_of(LazyItemIndex(written()).read()) < 700
