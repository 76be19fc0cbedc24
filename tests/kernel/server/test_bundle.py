"""A client that writes faster than the kernel reads: nothing is lost, and all of it counts."""

from __future__ import annotations

from typing import Any

import pycrdt

from antiphon_kernel.document.document import Document
from antiphon_kernel.server.sync.coalesce import coalesce
from antiphon_kernel.types.ids import RandomIds
from antiphon_kernel.yjs.frames import (
    Ack,
    AwarenessUpdate,
    QueryAwareness,
    SyncStep1,
    SyncUpdate,
    encode_frame,
)
from tests.kernel.served import RawClient, ServedKernel
from tests.waiting import until


async def burst(
    served: ServedKernel, block: str, words: list[str]
) -> tuple[RawClient, list[bytes]]:
    """A client, and the updates with which it types the words at the end of the block."""
    client = await served.raw(query="ack=1")
    document = Document(RandomIds().client_id())
    document.apply_update((await client.join()).update)
    updates: list[bytes] = []
    document.watch_updates(lambda update, _: updates.append(update))
    for word in words:
        document.splice(block, len(document.text(block)), 0, word)
    return client, updates


def one_write(updates: list[bytes]) -> bytes:
    """WebSocket frames of all updates, as one piece of data."""
    mask = b"\x00\x00\x00\x00"
    frames = [encode_frame(SyncUpdate(update)) for update in updates]
    assert all(len(frame) < 126 for frame in frames)
    return b"".join(bytes((0x82, 0x80 | len(frame))) + mask + frame for frame in frames)


async def test_burst_of_typing_takes_few_commits_and_every_update_is_acknowledged(
    served: ServedKernel,
) -> None:
    block = await served.block("")
    words = [f"word {number} é😀 " for number in range(300)]
    client, updates = await burst(served, block, words)
    context = await served.context()
    before, version = context.seq, context.blocks.version(block)
    client.socket.transport.write(one_write(updates))
    await client.next(Ack, lambda ack: ack.count == 300)
    assert context.document.text(block) == "".join(words)
    assert 1 <= context.seq - before < 100
    assert context.blocks.version(block) - version == context.seq - before
    history = await context.history(block)
    assert history.text() == "".join(words)


async def test_bundle_updates_before_rejected_one_are_applied(served: ServedKernel) -> None:
    block = await served.block("")
    client, updates = await burst(served, block, [f"{number} " for number in range(20)])
    writer: pycrdt.Doc[Any] = pycrdt.Doc(client_id=5)
    writer.get("blocks", type=pycrdt.Map)["nobody"] = "x"
    foreign = writer.get_update()
    client.socket.transport.write(one_write([*updates[:10], foreign, *updates[10:]]))
    assert (await client.closed())[0] == 4403
    context = await served.context()
    await until(
        lambda: context.document.text(block) == "".join(f"{number} " for number in range(10)),
        "what came before is there",
    )


async def test_bundle_updates_after_gap_wait_until_it_is_filled(served: ServedKernel) -> None:
    block = await served.block("")
    words = [f"{number} " for number in range(20)]
    client, updates = await burst(served, block, words)
    client.socket.transport.write(one_write([*updates[:5], *updates[10:]]))
    await client.next(SyncStep1)
    await client.next(SyncStep1)
    client.socket.transport.write(one_write(updates[5:]))
    context = await served.context()
    await until(lambda: context.document.text(block) == "".join(words), "all of it is there")


def test_bundle_keeps_order_of_other_messages() -> None:
    doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=7)
    text = doc.get("text", type=pycrdt.Text)
    typed: list[bytes] = []
    doc.observe(lambda event: typed.append(encode_frame(SyncUpdate(event.update))))
    for letter in "abcdef":
        text += letter
    asking, present = encode_frame(QueryAwareness()), encode_frame(AwarenessUpdate(b"\x00"))
    messages = [asking, typed[0], typed[1], present, typed[2], b"", typed[3], typed[4], typed[5]]
    made = list(coalesce(messages))
    assert [message for one in made for message in one.messages] == messages
    assert [len(one.messages) for one in made] == [1, 2, 1, 1, 1, 3]
    assert [one.merged is not None for one in made] == [False, True, False, True, False, True]
