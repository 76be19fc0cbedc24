"""Raw updates whose items name neighbours that no client ever saw beside each other.

The engine takes them in, and their order then depends on the order in which it reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest
from pycrdt import Text

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation.text_order import TextOrder
from antiphon_kernel.yjs.causal_order import in_causal_order
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import Caller, Make
from tests.kernel.validation.peers import Layout, Peer, refused

SEEDS = int(os.environ.get("ANTIPHON_CASES", "24")) // 3
_BO = 2**40


def characters(context: Context, text: str) -> list[ItemId]:
    """Return the items of a text that was written in one go."""
    structs = decode_update(context.document.update_since()).structs
    one = next(one for one in structs if one.content == text)
    return [ItemId(one.client, one.clock + at) for at in range(one.length)]


async def forge(context: Context, actor: Actor, block: str, seed: int) -> int:
    """Send items with random neighbours in a small text; returns how many were accepted."""
    rng, accepted = Random(seed), 0
    for _ in range(rng.randint(4, 14)):
        items = Layout(context, block).items[""]
        client = _BO + rng.randrange(4)
        structs: list[Struct] = []
        clock = context.structure.item_index.end(client)
        for _ in range(rng.randint(1, 3)):
            origin, right = rng.choice((*items, None)), rng.choice((*items, None))
            parent = Layout(context, block).containers[""] if origin is right is None else None
            text = rng.choice(("x", "yz"))
            kind = ContentKind.STRING
            one = Struct(client, clock, len(text), kind, origin, right, parent, content=text)
            structs.append(one)
            items = [*items, *(ItemId(client, clock + at) for at in range(one.length))]
            clock += one.length
        gone = rng.choice(items) if rng.random() < 0.3 else None
        deletions = (IdRange(gone.client, gone.clock, gone.clock + 1),) if gone else ()
        try:
            await apply_update(context, actor, encode_update(structs, deletions), "client")
        except AntiphonError:
            continue
        accepted += 1
    return accepted


def readings(state: bytes, block: str, seed: int) -> Iterator[str]:
    """Yield the text of a block as read at once, and in random orders that its items allow."""
    rng, decoded = Random(seed), decode_update(state)
    whole = Document(1)
    whole.apply_update(state)
    yield whole.text(block)
    clients = list({one.client for one in decoded.structs})
    for _ in range(4):
        rng.shuffle(clients)
        structs = sorted(decoded.structs, key=lambda one: (clients.index(one.client), one.clock))
        read = Document(1)
        for one in in_causal_order(structs):
            read.apply_update(encode_update([one], ()))
        read.apply_update(encode_update((), decoded.deletions))
        yield read.text(block)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_items_with_random_neighbours_read_the_same_in_every_order(
    call: Caller, context: Context, bo: Actor, make: Make, seed: int
) -> None:
    block = await make("abc")
    await forge(context, bo, block, seed)
    text = context.document.text(block)
    assert {*readings(context.document.update_since(), block, seed)} == {text}
    blamed = await call("block.blame", block_id=block)
    assert blamed["runs"][-1]["end"] == len(text)


async def test_items_with_random_neighbours_unchecked_read_differently(
    context: Context, bo: Actor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TextOrder, "check", lambda *_: ())
    block = await make("abc")
    for seed in range(6):
        await forge(context, bo, block, seed)
    texts = {context.document.text(block), *readings(context.document.update_since(), block, 0)}
    assert len(texts) > 1


def edit(rng: Random, text: Text) -> None:
    """Insert or delete at a random place."""
    length = len(str(text))
    if length and rng.random() < 0.35:
        at = rng.randrange(length)
        del text[at : min(length, at + rng.randint(1, 3))]
    else:
        text.insert(rng.randint(0, length), rng.choice(("a", "bc", "def")))


@pytest.mark.parametrize("seed", range(SEEDS // 2))
async def test_clients_that_write_at_once_are_never_taken_for_forgers(
    call: Caller, context: Context, bo: Actor, make: Make, seed: int
) -> None:
    rng, block = Random(seed), await make("abc")
    peers = [Peer(context, _BO + number, keeps=number % 2 == 0) for number in range(3)]
    for _ in range(25):
        peer = rng.choice(peers)
        if rng.random() < 0.2:
            await call("block.append", block_id=block, text="kernel")
        elif rng.random() < 0.1:
            with suppress(AntiphonError):
                await call("block.undo")
        elif rng.random() < 0.3:
            peer.hear()
        else:
            for _ in range(rng.randint(1, 4)):
                edit(rng, peer.content(block))
            await apply_update(context, bo, peer.update(), "client")
    assert {*readings(context.document.update_since(), block, seed)} == {
        context.document.text(block)
    }


async def test_item_between_items_that_were_never_neighbours_is_rejected(
    context: Context, bo: Actor, make: Make
) -> None:
    await make("abc")
    a, _, c = characters(context, "abc")
    for origin, right in ((a, c), (c, a), (a, a), (None, c)):
        item = Struct(_BO, 0, 1, ContentKind.STRING, origin, right, content="x")
        error = await refused(context, bo, encode_update([item], ()), ErrorCode.INVALID_PARAMS)
        assert "never beside each other" in error.message


async def test_item_between_neighbours_of_its_own_update_is_rejected(
    context: Context, bo: Actor, make: Make
) -> None:
    await make("abc")
    a, b, _ = characters(context, "abc")
    first = Struct(_BO, 0, 1, ContentKind.STRING, a, b, content="x")
    second = Struct(_BO, 1, 1, ContentKind.STRING, a, b, content="y")
    await refused(context, bo, encode_update([first, second], ()))


async def test_item_in_a_draft_of_the_same_update_is_checked(context: Context, bo: Actor) -> None:
    peer = Peer(context)
    block = peer.draft(bo, "abc")
    structs = decode_update(peer.update()).structs
    text = next(one for one in structs if one.content == "abc")
    a, c = ItemId(text.client, text.clock), ItemId(text.client, text.clock + 2)
    end = max(one.clock + one.length for one in structs)
    forged = Struct(text.client, end, 1, ContentKind.STRING, a, c, content="x")
    await refused(context, bo, encode_update([*structs, forged], ()))
    await apply_update(context, bo, encode_update(structs, ()), "client")
    assert block in context.document
