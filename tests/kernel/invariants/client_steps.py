"""Steps of connected clients, which come and go."""

from __future__ import annotations

from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from tests.kernel.invariants.tool_steps import Case
from tests.kernel.invariants.world import CLIENTS, PEOPLE


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
