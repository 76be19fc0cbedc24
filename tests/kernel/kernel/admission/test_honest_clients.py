"""Nothing is refused of clients that keep to the schema, though they write at the same time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.admission.peers import Peer

CLIENTS = (3, 77, 5_000, 2**40)


class Honest:
    """A client that writes what the schema allows, and hears of the others now and then."""

    def __init__(self, context: Context, block: str, client: int, rng: random.Random) -> None:
        self._peer = Peer(context, client, keeps=rng.random() < 0.5)
        self._block = block
        self._client = client
        self._rng = rng
        self._unsent = 0
        self.said: list[str] = []

    @property
    def content(self) -> Any:
        return self._peer.content(self._block)

    def write(self) -> None:
        rng, content = self._rng, self.content
        state, log = content["state"], content["log"]
        match rng.randrange(8):
            case 0 | 1 | 2:
                self.said.append(f"{self._client} {len(self.said)}")
                log.append(self.said[-1])
                self._unsent += 1
            case 3 if self._unsent and str(log[len(log) - 1]) == self.said[-1]:
                self.said[-1:] = []
                self._unsent -= 1
                del log[len(log) - 1]
            case 4:
                state["must"] = float(rng.randrange(100))
            case 5:
                key = str(self._client)
                state["count"][key] = str(int(state["count"].get(key, "0")) + 1)
            case 6 if "flag" in state:
                del state["flag"]
            case 6:
                state["flag"] = True
            case _:
                state["title"].insert(0, "é")

    async def send(self, context: Context, actor: Actor) -> None:
        await context.remote.apply(actor, self._peer.update(), self._peer)
        self._unsent = 0

    def hear(self) -> None:
        self._peer.hear()


@pytest.mark.parametrize("seed", range(6))
async def test_what_honest_clients_write_at_the_same_time_is_all_taken(
    context: Context, bo: Actor, block: str, seed: int
) -> None:
    rng = random.Random(seed)
    clients = [Honest(context, block, one, rng) for one in CLIENTS]
    for _ in range(150):
        client = rng.choice(clients)
        match rng.randrange(3):
            case 0:
                await client.send(context, bo)
            case 1:
                client.hear()
            case _:
                client.write()
    for client in clients:
        await client.send(context, bo)
    content = read_content(context.document, block)
    assert not content.violations
    log = content.value["log"]
    assert log[:2] == ["first", "second"]
    for client in clients:
        client.hear()
        own = [one for one in log if one in client.said]
        assert own == client.said
        assert client.content["log"].to_py() == log
    assert len(log) == 2 + sum(len(client.said) for client in clients)
