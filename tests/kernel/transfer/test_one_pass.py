"""An export reads the journal once and says what the history of each block says by itself."""

from __future__ import annotations

import gc
import json
import os
import random
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.contexts.history import history_cache, journal_index
from antiphon_kernel.document.schema import each_part, is_text, path_of
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.transfer import export_lines
from antiphon_kernel.transfer.exporting import header_fields
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import Offline

SEEDS = int(os.environ.get("ANTIPHON_CASES", "300")) // 100
STEPS = 120
SCHEMA = {
    "type": "map",
    "fields": [
        {"name": "notes", "field_type": "text"},
        {"name": "votes", "field_type": "counter"},
    ],
}


class Story:
    """Several people and a shell write at random, by tools and by raw updates."""

    def __init__(self, kernel: Kernel, context: Context, actors: list[Actor], seed: int) -> None:
        self.kernel = kernel
        self.context = context
        self.actors = actors
        self.rng = random.Random(seed)
        self.texts: list[str] = []
        self.maps: list[str] = []
        self.clients = 5_000

    async def go_on(self, steps: int) -> None:
        acts = [self.create, self.splice, self.splice, self.append, self.undo, self.redo]
        acts += [self.offline, self.hidden, self.field, self.read]
        await self.create()
        for _ in range(steps):
            await self.rng.choice(acts)()

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.rng.choice(self.actors), tool, params)

    async def create(self) -> None:
        new: dict[str, Any] = {"kind": "tool_call"}
        new["context"] = self.context.id
        structured = bool(self.texts) and self.rng.random() < 0.2
        more = {"schema": SCHEMA} if structured else {"content": "one 😀\ntwo\n"}
        block = (await self.call("block.create", **new, **more))["block_id"]
        (self.maps if structured else self.texts).append(block)

    async def splice(self) -> None:
        block = self.rng.choice(self.texts)
        length = len(self.context.document.text(block))
        at = self.rng.randint(0, length)
        delete = self.rng.randint(0, min(3, length - at))
        insert = self.rng.choice(("x", "漢", "", "line\n"))
        await self.call(
            "block.splice", block_id=block, offset=at, delete_count=delete, insert=insert
        )

    async def append(self) -> None:
        running = [one for one in self.texts if self.is_running(one)]
        if running:
            await self.call("block.append", block_id=self.rng.choice(running), text="more ")

    def is_running(self, block: str) -> bool:
        return self.context.document.header(block).status == "running"

    async def field(self) -> None:
        if self.maps:
            block, text = self.rng.choice(self.maps), self.rng.choice(("a", "bb", "😀"))
            await self.call("block.append", block_id=block, section="notes", text=text)
            await self.call("block.increment", block_id=block, field="votes", by=1)

    async def undo(self, tool: str = "block.undo") -> None:
        with suppress(AntiphonError):  # there may be nothing to undo
            await self.call(tool, context=self.context.id)

    async def redo(self) -> None:
        await self.undo("block.redo")

    async def offline(self) -> None:
        offline = self.someone_offline()
        for block in self.rng.sample(self.texts, min(3, len(self.texts))):
            offline.write(block, 6)
        await self.hand_in(offline)

    async def hidden(self) -> None:
        """Write beside what was written and removed offline, which touches no block."""
        offline, block = self.someone_offline(), self.rng.choice(self.texts)
        content = offline.blocks[block]["content"]
        content += "never seen"
        size = len(str(content).encode())
        del content[size - 10 : size]
        await self.hand_in(offline)
        offline.write(block, 2)
        content += "seen"
        await self.hand_in(offline)

    def someone_offline(self) -> Offline:
        self.clients += 1
        actor = self.rng.choice(self.actors)
        return Offline(self.context, actor, self.clients, self.clients)

    async def hand_in(self, offline: Offline) -> None:
        await apply_update(self.context, offline.actor, offline.update(), "client")

    async def read(self) -> None:
        await self.context.history(self.rng.choice(self.texts))


@pytest.fixture
async def actors(kernel: Kernel, amy: Actor) -> list[Actor]:
    owners = [amy, kernel.open_session(kernel.owner, "test")]
    model = kernel.open_session(await kernel.principal("aria", PrincipalKind.SHELL), "turn")
    return [*owners, model]


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
    assert peak < 20_000_000
