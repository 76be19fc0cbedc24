"""An export reads the journal once and says what the history of each block says by itself."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import tracemalloc
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.history import history_cache, journal_index
from antiphon_kernel.document.schema import each_part, is_text, path_of
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.transfer import export_lines
from antiphon_kernel.transfer.exporting import header_fields
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make
from tests.kernel.transfer.stories import Story, actors
from tests.waiting import until

__all__ = ("actors",)

SEEDS = int(os.environ.get("ANTIPHON_CASES", "100")) // 100
STEPS = 120


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every export takes several batches."""
    monkeypatch.setattr(history_cache, "_BATCH_BLOCKS", 7)
    monkeypatch.setattr(journal_index, "_OPS_READ", 5)
    monkeypatch.setattr(journal_index, "_TOUCHES_READ", 11)


async def as_each_history_says(context: Context) -> list[dict[str, Any]]:
    document = context.document
    found = []
    for block in document.block_ids():
        history = await context.history(block)
        authors = []
        for names, part in each_part(document.schema(block)):
            at = 0
            for run in history.blame(path_of(names)) if is_text(part) else ():
                end, stamp = at + run.length, run.stamp
                about = {"principal": stamp.principal, "version": stamp.version}
                where = {"section": path_of(names)} if names else {}
                authors.append(
                    {"start": at, "end": end, **about, "time": iso_time(stamp.time), **where}
                )
                at = end
        header = json.loads(json.dumps(header_fields(document.header(block))))
        line = {"id": block, "version": context.blocks.version(block), "header": header}
        found.append({**line, "text": document.text(block), "authors": authors})
    return found


async def as_exported(kernel: Kernel, context: Context) -> list[dict[str, Any]]:
    text = "".join([piece async for piece in export_lines(kernel, context)])
    lines = [json.loads(line) for line in text.split("\n") if line]
    assert lines[-1] == {"type": "end", "blocks": len(context.document)}
    shown = ("id", "version", "header", "text", "authors")
    return [{name: line[name] for name in shown} for line in lines if line["type"] == "block"]


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_export_of_a_random_context_has_the_authors_of_each_history(
    kernel: Kernel, actors: list[Actor], seed: int
) -> None:
    story = Story(kernel, await kernel.context(), actors, seed)
    await story.go_on(STEPS)
    assert await as_exported(kernel, story.context) == await as_each_history_says(story.context)


@pytest.mark.parametrize("way", ["fork", "import"])
async def test_export_of_a_copy_that_is_written_on_has_the_authors_of_each_history(
    kernel: Kernel, actors: list[Actor], way: str
) -> None:
    first = Story(kernel, await kernel.context(), actors, 1)
    await first.go_on(STEPS // 3)
    if way == "fork":
        await kernel.call(actors[0], "context.fork", {"context": "default", "label": "copy"})
    else:
        text = (await kernel.call(actors[0], "context.export", {}))["text"]
        await kernel.call(actors[0], "context.import", {"label": "copy", "text": text})
    story = Story(kernel, await kernel.context("copy"), actors, 2)
    document = story.context.document
    story.texts = [one for one in document.block_ids() if document.text(one)]
    await story.go_on(STEPS // 3)
    assert await as_exported(kernel, story.context) == await as_each_history_says(story.context)


async def test_export_during_writes_holds_each_block_at_one_moment(
    kernel: Kernel, actors: list[Actor]
) -> None:
    story = Story(kernel, await kernel.context(), actors, 3)
    await story.go_on(STEPS // 2)
    ends = 0
    async for piece in export_lines(kernel, story.context):
        for line in map(json.loads, piece.splitlines()):
            if line["type"] == "block" and line.get("schema") is None:
                authors = line["authors"]
                assert (authors[-1]["end"] if authors else 0) == len(line["text"])
            ends += line["type"] == "end"
        await story.go_on(5)
    assert ends == 1


async def test_export_holds_no_more_than_a_batch_in_memory(kernel: Kernel, make: Make) -> None:
    for _ in range(20):
        await make("x" * 500_000, status="done")
    context = await kernel.context()
    await until(lambda: not any("snapshot" in one.get_name() for one in asyncio.all_tasks()))
    # Nothing may wait for the collector, which counts objects, not their size.
    gc.disable()
    tracemalloc.start()
    try:
        async for _ in export_lines(kernel, context):
            pass
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert left < 3_000_000
    assert peak < 10_000_000
