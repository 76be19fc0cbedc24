"""The sync protocol as a client sees it, frame by frame."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket as sockets
import stat
from pathlib import Path
from typing import Any

import pycrdt
import pytest

from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.sync.room import coalesce
from antiphon_kernel.yjs.frames import (
    Ack,
    AwarenessUpdate,
    PermissionDenied,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    encode_frame,
)
from antiphon_kernel.yjs.id_set import decode_state_vector
from antiphon_kernel.yjs.update import EMPTY_UPDATE
from tests.kernel.served import RawWriter, ServedKernel, served_kernel
from tests.waiting import until


async def test_sync_server_is_silent_until_client_sends_state(served: ServedKernel) -> None:
    client = await served.raw()
    await served.block("hello")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.socket.recv(), 0.05)


async def test_updates_that_come_one_at_a_time_are_broadcast_without_pause(tmp_path: Path) -> None:
    async with served_kernel(
        tmp_path, ServerLimits(read_tick=3600.0, broadcast_tick=3600.0)
    ) as served:
        block = await served.block("a")
        await served.call("block.status", block_id=block, status="running")
        writer, reader = await served.writer(), await served.writer()
        for text in ("ab", "abc", "abcd"):
            await writer.append(block, text[-1])
            reader.document.apply_update((await reader.client.next(SyncUpdate)).update)
            assert reader.document.text(block) == text


async def test_update_after_broadcast_of_several_changes_waits_for_the_pause(
    tmp_path: Path,
) -> None:
    async with served_kernel(tmp_path, ServerLimits(broadcast_tick=3600.0)) as served:
        block = await served.block("")
        writer, reader = await served.writer("ack=1"), await served.writer()
        await writer.append(block, "a")  # the kernel adds that the block is running
        await reader.client.next(SyncUpdate)
        await writer.append(block, "b")
        await writer.client.next(Ack, lambda ack: ack.count == 2)
        await reader.client.send(SyncStep1(b"\x00"))
        reader.document.apply_update((await reader.client.next(SyncStep2)).update)
        assert reader.document.text(block) == "ab"
        assert sum(isinstance(one, SyncUpdate) for one in reader.client.received) == 1


async def test_update_reaches_the_others_and_not_its_sender(served: ServedKernel) -> None:
    block = await served.block("hello")
    writer, reader = await served.writer(), await served.writer()
    update = writer.write(lambda document: document.splice(block, 5, 0, "!"))
    await writer.client.send(SyncUpdate(update))
    reader.document.apply_update((await reader.client.next(SyncUpdate)).update)
    assert reader.document.text(block) == "hello!"
    context = await served.context()
    await context.wait_persisted()
    await writer.client.send(SyncStep1(writer.document.state_vector()))
    await writer.client.next(SyncStep2)
    own = decode_state_vector(writer.document.state_vector())[writer.document.client_id]
    for frame in writer.client.received:
        if isinstance(frame, SyncUpdate):
            clocks = decode_state_vector(pycrdt.get_state(frame.update))
            assert clocks.get(writer.document.client_id, 0) < own
    assert not any(isinstance(frame, Ack) for frame in writer.client.received), "unasked"


async def test_sync_sender_receives_fields_added_by_kernel(served: ServedKernel) -> None:
    block = await served.block("hello", status="done")
    writer = await served.writer()
    update = writer.write(lambda document: document.splice(block, 0, 0, ">"))
    await writer.client.send(SyncUpdate(update))
    writer.document.apply_update((await writer.client.next(SyncUpdate)).update)
    assert writer.document.header(block).edited_after_done
    assert writer.document.text(block) == ">hello"


async def test_updates_are_acknowledged_once_they_are_on_disk(served: ServedKernel) -> None:
    block = await served.block("hello")
    writer = await served.writer("ack=1")
    for _ in range(50):
        update = writer.write(lambda document: document.splice(block, 0, 0, "x"))
        await writer.client.send(SyncUpdate(update))
    await writer.client.send(SyncStep2(EMPTY_UPDATE))
    acks = []
    while not acks or acks[-1] < 51:
        acks.append((await writer.client.next(Ack)).count)
    assert acks == sorted(set(acks))
    assert (await served.context()).document.text(block) == "x" * 50 + "hello"


async def test_update_with_a_gap_is_answered_with_a_question(served: ServedKernel) -> None:
    block = await served.block("hello")
    writer = await served.writer("ack=1")
    await writer.client.send(SyncStep2(EMPTY_UPDATE))
    await writer.client.next(Ack, lambda ack: ack.count == 1)
    writer.write(lambda document: document.splice(block, 0, 0, "lost "))
    second = writer.write(lambda document: document.splice(block, 0, 0, "found "))
    await writer.client.send(SyncUpdate(second))
    asked = await writer.client.next(SyncStep1)
    assert (await served.context()).document.text(block) == "hello"
    await writer.client.send(SyncStep2(writer.document.update_since(asked.state_vector)))
    await writer.client.next(Ack, lambda ack: ack.count == 3)
    assert (await served.context()).document.text(block) == "found lost hello"


async def test_replica_of_another_epoch_is_turned_away_before_anything(
    served: ServedKernel,
) -> None:
    stranger = pycrdt.Doc()
    stranger.get("blocks", type=pycrdt.Map)["mine"] = "all of it"
    client = await served.raw()
    await client.send(SyncStep1(stranger.get_state()))
    code, reason = await client.closed()
    assert code == 4409
    assert reason is not None and "epoch" in reason
    assert client.received == []


async def test_burst_of_updates_arrives_as_few_frames(served: ServedKernel) -> None:
    block = await served.block()
    reader = await served.writer()
    calls = [
        served.kernel.call(served.me, "block.append", {"block_id": block, "text": f"{number} "})
        for number in range(300)
    ]
    await asyncio.gather(*calls)
    expected = "".join(f"{number} " for number in range(300))
    frames = 0
    while reader.document.text(block) != expected:
        reader.document.apply_update((await reader.client.next(SyncUpdate)).update)
        frames += 1
    assert frames < 100


async def test_hours_of_offline_writing_come_in_one_message_and_later_ones_are_smaller(
    served: ServedKernel,
) -> None:
    block = await served.block("hello")
    writer = await served.writer("ack=1")
    update = writer.write(lambda document: document.append(block, "x" * 5_000_000))
    await writer.client.send(SyncStep2(update))
    await writer.client.next(Ack, lambda ack: ack.count == 1)
    update = writer.write(lambda document: document.append(block, "y" * 5_000_000))
    await writer.client.send(SyncUpdate(update))
    denied = await writer.client.next(PermissionDenied)
    assert denied.reason.startswith("too_large: ")
    assert len((await served.context()).document.text(block)) == 5_000_005


async def test_small_frames_over_tcp_are_not_delayed(served: ServedKernel) -> None:
    raw = await served.joined()
    assert is_sent_at_once(raw.socket.local_address)


def is_sent_at_once(client: object) -> bool:
    """Whether the socket of this process whose peer has this address delays no small segments."""
    for number in (int(one.name) for one in Path("/dev/fd").iterdir()):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with sockets.socket(fileno=os.dup(number)) as sock:
                    if sock.getpeername() == client:
                        return sock.getsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY) != 0
    raise AssertionError(f"nothing in this process is connected to {client}")


async def test_client_that_only_reads_leaves_the_items_of_the_document_unread(
    served: ServedKernel,
) -> None:
    block = await served.block("hello world")
    await served.call("block.splice", block_id=block, offset=0, delete_count=6, insert="")
    reader = await served.writer("ack=1")
    nothing = reader.document.update_since(reader.document.state_vector())
    assert nothing != EMPTY_UPDATE
    await reader.client.send(SyncStep2(nothing))
    assert (await reader.client.next(Ack)).count == 1
    assert not (await served.context()).structure.ready
    await reader.append(block, "!")
    assert (await reader.client.next(Ack)).count == 2
    assert (await served.context()).structure.ready
    assert (await served.context()).document.text(block) == "world!"


def typed(writer: RawWriter, block: str, word: str) -> bytes:
    """The update with which a word is typed at the end of a block."""
    return writer.write(lambda one: one.splice(block, one.length(block), 0, word))


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
    writer, context = await served.writer("ack=1"), await served.context()
    client, updates = writer.client, [typed(writer, block, word) for word in words]
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
    writer, other = await served.writer("ack=1"), pycrdt.Doc[Any](client_id=5)
    client, updates = writer.client, [typed(writer, block, f"{number} ") for number in range(20)]
    other.get("blocks", type=pycrdt.Map)["nobody"] = "x"
    foreign = other.get_update()
    client.socket.transport.write(one_write([*updates[:10], foreign, *updates[10:]]))
    assert (await client.closed())[0] == 4403
    context = await served.context()
    await until(
        lambda: context.document.text(block) == "".join(f"{number} " for number in range(10)),
        "what came before is there",
    )


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
