"""Nothing is refused of clients that write into texts, though they and tools write at once."""

from __future__ import annotations

import random

import pytest
from pycrdt import Text

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.kernel.validation.peers import Peer, value

CLIENTS = (3, 77, 5_000, 2**40)
TEXTS = ("state/title", "notes")


def write(rng: random.Random, text: Text) -> None:
    match rng.randrange(3):
        case 0:
            text.insert(0, rng.choice(("é", "😀", "line\n")))
        case 1 if text:
            text.insert(0, "bold", {"bold": True})
        case _ if text:
            del text[0 : len(str(text)[0].encode())]


async def call_a_tool(kernel: Kernel, actor: Actor, block: str, number: int) -> None:
    """Write into something that is no text."""
    tool, params = (
        ("block.append_log", {"section": "log", "entry": number}),
        ("block.set_field", {"section": "state", "field": "must", "value": number}),
        ("block.increment", {"section": "state", "field": "count", "by": 1}),
    )[number % 3]
    await kernel.call(actor, tool, {"block_id": block, **params})


@pytest.mark.parametrize("seed", range(2))
async def test_texts_that_clients_and_parts_that_tools_write_at_the_same_time_are_all_taken(
    kernel: Kernel, context: Context, amy: Actor, bo: Actor, block: str, seed: int
) -> None:
    rng = random.Random(seed)
    clients = [Peer(context, one, keeps=rng.random() < 0.5) for one in CLIENTS]
    for number in range(150):
        client = rng.choice(clients)
        match rng.randrange(4):
            case 0:
                await client.send(bo)
            case 1:
                client.hear()
            case 2:
                write(rng, client.text(block, rng.choice(TEXTS)))
            case _:
                await call_a_tool(kernel, amy, block, number)
    for client in clients:
        await client.send(bo)
    assert not read_content(context.document, block).violations
    for client in clients:
        client.hear()
        for path in TEXTS:
            assert str(client.text(block, path)) == value(context, block, path)
