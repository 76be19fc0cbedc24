"""Contexts that several people and a program write at random."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from tests.kernel.validation.peers import Offline

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
