"""A random machine over a `World`, and the steps of connected clients, which come and go."""

from __future__ import annotations

import random
from typing import Final

from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from tests.kernel.invariants.earlier_steps import EarlierSteps
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.tool_steps import Case
from tests.kernel.invariants.world import CLIENTS, NAMES, PEOPLE, World, open_world


class ClientSteps(Case):
    """People type into replicas of their own."""

    def client(self) -> str:
        return self.rng.choice(CLIENTS)

    async def type(self) -> None:
        name = self.client()
        client = self.world.clients[name]
        alphabet = self.world.alphabets[name.split(".")[0]]
        for _ in range(self.rng.randint(1, 3)):
            texts = client.texts()
            if not texts:
                return
            block = self.rng.choice(texts)
            length = len(client.text(block))
            offset = self.rng.randint(0, length)
            count = self.rng.choice((0, 0, 1, self.longest_deletion))
            count = min(count, length - offset)
            inserted = alphabet.some(self.rng, 3) if self.rng.random() < 0.8 else ""
            self.done[-1] += f" {name} {block[-20:]} {offset} -{count} +{inserted!r}"
            client.splice(block, offset, count, inserted)
        if client.online and self.rng.random() < 0.6:
            await client.send(self.world.context, self.rng)

    async def draft(self) -> None:
        name = self.rng.choice(PEOPLE)
        client, context = self.world.clients[name], self.world.context
        principal = self.world.actors[name].principal.id
        block = f"{context.id}.{principal}.{DRAFT_SEQ_MIN + self.rng.randrange(2**40)}"
        fields = {
            "kind": "text",
            "role": "user",
            "status": "pending",
            "order": "a5",
            "created": "2026-01-01T00:00:00.000Z",
            "author": principal,
        }
        client.draft(block, fields, self.word(name))

    async def listen(self) -> None:
        name = self.client()
        self.done[-1] += f" {name}"
        self.world.clients[name].listen(self.rng, everything=False)

    async def send(self) -> None:
        name = self.client()
        client = self.world.clients[name]
        self.done[-1] += f" {name}"
        if client.online:
            await client.send(self.world.context, self.rng)

    async def go_offline(self) -> None:
        self.world.clients[self.client()].disconnect()

    async def come_back(self) -> None:
        for name, client in self.world.clients.items():
            if not client.online:
                self.done[-1] += f" {name}"
                await client.connect(self.world.context)
                return


_WEIGHTS: Final = {
    "create": 2,
    "draft": 1,
    "splice": 4,
    "edit": 4,
    "edit_earlier": 4,
    "splice_earlier": 3,
    "race": 2,
    "look_back": 1,
    "restore": 1,
    "append": 3,
    "stream": 6,
    "type": 10,
    "listen": 4,
    "send": 5,
    "go_offline": 1,
    "come_back": 2,
    "undo": 5,
    "redo": 3,
    "finish": 1,
    "trespass": 1,
    "arrange": 2,
    "fail": 2,
    "pause": 2,
    "end_session": 1,
    "blame": 1,
    "be_idle": 2,
    "restart": 1,
    "crash": 1,
}
_QUARREL: Final = {
    "splice": 6,
    "edit": 2,
    "splice_earlier": 2,
    "type": 10,
    "listen": 4,
    "send": 5,
    "go_offline": 1,
    "come_back": 2,
    "undo": 14,
    "redo": 8,
    "restore": 1,
    "blame": 1,
    "be_idle": 1,
    "restart": 1,
    "crash": 1,
}
"""One block, and everybody removes and brings back what the others have written."""


class Machine(EarlierSteps, ClientSteps):
    """Random steps; every one is checked by the world it happens in."""

    async def run(self, steps: int) -> None:
        quarrel = self.rng.randrange(3) == 0
        self.longest_deletion = 12 if quarrel else 3
        weights = _QUARREL if quarrel else _WEIGHTS
        try:
            await self.begin()
            for name in self.rng.choices(list(weights), list(weights.values()), k=steps):
                await self.step(name)
            await self.end()
        except BaseException as error:
            error.add_note("\n".join(self.done))
            raise

    async def begin(self) -> None:
        world = self.world
        for name in CLIENTS:
            await world.add_client(name, keeps_deleted=self.rng.random() < 0.5)
        await self.create()

    # Lives of the kernel

    async def restart(self) -> None:
        await self.world.restart()

    async def crash(self) -> None:
        await self.world.crash()

    async def be_idle(self) -> None:
        await self.world.be_idle()

    # The end

    async def end(self) -> None:
        """Everybody comes back, somebody undoes everything and does it again."""
        world = self.world
        await self.flush()
        await self.meet()
        world.check_streams()
        for block in world.oracle.blocks():
            await world.check_blame(block)
        await self.undo_everything()
        await self.meet()

    async def meet(self) -> None:
        """All clients come online, send and hear everything."""
        world = self.world
        for client in world.clients.values():
            if client.online:
                await client.send(world.context, self.rng)
            else:
                await client.connect(world.context)
        await world.settle()
        for client in world.clients.values():
            client.listen(self.rng, everything=True)
        await world.check_equal()

    async def undo_everything(self) -> None:
        """Undo all of one principal, restart, redo all: the same again, and nothing of others."""
        world, rng = self.world, self.rng
        name = rng.choice(NAMES)
        whose = world.actors[name].principal.id
        self.done.append(f"{name} undoes everything")
        while world.oracle.can_turn(whose, "redo", None):
            await world.call(name, "block.redo")
        before = {block: world.oracle.text(block) for block in world.oracle.blocks()}
        others = _by_others(world, whose)
        count = 0
        while world.oracle.can_turn(whose, "undo", None):
            await world.call(name, "block.undo")
            count += 1
            if rng.random() < 0.05:
                await world.restart()
        left = _by_others(world, whose)
        for block, chars in others.items():
            if not chars <= left[block]:
                raise Violation(f"{name} has undone everything, and others have lost text")
        for block in world.oracle.blocks():
            await world.check_blame(block)
        for _ in range(count):
            await world.call(name, "block.redo")
        for block, text in before.items():
            world.compare(text, block, f"before {name} undid and redid everything")


def _by_others(world: World, principal: str) -> dict[str, set[int]]:
    """The visible characters of everybody else, by block."""
    return {
        block: {id(char) for char in world.oracle.visible(block) if char.principal != principal}
        for block in world.oracle.blocks()
    }


async def run_machine(rng: random.Random) -> None:
    async with open_world(rng) as world:
        await Machine(world).run(steps=40)
