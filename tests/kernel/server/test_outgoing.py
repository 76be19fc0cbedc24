"""Queue for a slow reader: bounded, and nothing is lost; counting what reaches the disk."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pycrdt
import pytest
from websockets.frames import Frame, Opcode

from antiphon_kernel.server.sync.ack_tracker import AckTracker
from antiphon_kernel.server.sync.send_queue import (
    SendQueue,
    StateRequest,
    UpdateFrame,
    binary_message,
    text_message,
)
from antiphon_kernel.yjs.frames import SyncStep2, SyncUpdate, decode_frame, encode_frame
from antiphon_kernel.yjs.state_vector import decode_state_vector, encode_state_vector
from tests.waiting import PATIENCE


def test_frames_are_taken_in_order() -> None:
    outgoing = SendQueue(1000, lambda _: False)
    update = UpdateFrame(b"\x00\x00")
    outgoing.frame(b"a")
    outgoing.update(update)
    outgoing.state(b"\x00")
    outgoing.frame(b"b")
    taken = [outgoing.take() for _ in range(5)]
    assert taken[:2] == [b"a", update.frame]
    assert isinstance(taken[2], StateRequest)
    assert taken[3:] == [b"b", None]
    assert outgoing.size == 0


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 100_000])
def test_message_is_one_frame_as_a_server_sends_it(size: int) -> None:
    payload = bytes(size)
    frame = Frame(Opcode.BINARY, payload)
    assert binary_message(payload) == frame.serialize(mask=False)
    text = Frame(Opcode.TEXT, payload)
    assert text_message(payload.decode()) == text.serialize(mask=False)


@pytest.mark.parametrize("seed", range(20))
async def test_send_queue_immediate_send_keeps_order(seed: int) -> None:
    chance = random.Random(seed)
    sent: list[bytes] = []

    def send_now(message: bytes) -> bool:
        can = chance.random() < 0.7
        if can:
            sent.append(message)
        return can

    outgoing = SendQueue(1_000_000, send_now)

    asked = False

    async def write() -> None:
        nonlocal asked
        while True:
            item = outgoing.take()
            if item is None:
                await outgoing.changed()
                continue
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            sent.append(item.state_vector if isinstance(item, StateRequest) else item)
            asked = asked and not isinstance(item, StateRequest)

    writer = asyncio.create_task(write())
    due: list[bytes] = []
    for number in range(500):
        name = f"{number:04}".encode()
        kind = chance.randrange(10)
        if kind == 0 and not asked:
            outgoing.state(name)
            asked = True
        elif kind < 5:
            outgoing.frame(name)
        else:
            outgoing.update(UpdateFrame(name))
        due.append(name)
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
    while len(sent) < len(due):
        await asyncio.sleep(0)
    assert [one[-4:] for one in sent] == due
    writer.cancel()


@pytest.mark.parametrize("seed", range(20))
def test_send_queue_resync_brings_dropped_updates(seed: int) -> None:
    rng = random.Random(seed)
    source = pycrdt.Doc()
    others = [pycrdt.Doc() for _ in range(2)]
    outgoing = SendQueue(600, lambda _: False)
    reader = pycrdt.Doc()
    updates: list[bytes] = []
    source.observe(lambda event: updates.append(event.update))
    for _ in range(300):
        writer = rng.choice([source, *others])
        text = writer.get("t", type=pycrdt.Text)
        if len(text) and rng.random() < 0.2:
            del text[0]
        else:
            text.insert(rng.randint(0, len(text)), "x" * rng.randint(1, 20))
        for other in others:
            source.apply_update(other.get_update(source.get_state()))
        for update in updates:
            outgoing.update(UpdateFrame(update))
        updates.clear()
        assert outgoing.size <= 600
        if rng.random() < 0.1:
            _drain(outgoing, source, reader)
    _drain(outgoing, source, reader)
    assert str(reader.get("t", type=pycrdt.Text)) == str(source.get("t", type=pycrdt.Text))
    assert reader.get_state() and decode_state_vector(reader.get_state()) == decode_state_vector(
        source.get_state()
    )


def _drain(outgoing: SendQueue, source: pycrdt.Doc[Any], reader: pycrdt.Doc[Any]) -> None:
    """Do what a connection's writer does, without a connection."""
    while True:
        item = outgoing.take()
        if isinstance(item, bytes):
            frame = decode_frame(item)
            assert isinstance(frame, SyncUpdate)
            reader.apply_update(frame.update)
        elif (missed := outgoing.take_missed()) is not None:
            clocks = decode_state_vector(source.get_state()) | missed
            state = encode_frame(SyncStep2(source.get_update(encode_state_vector(clocks))))
            answer = decode_frame(state)
            assert isinstance(answer, SyncStep2)
            reader.apply_update(answer.update)
        else:
            return


class Ledger:
    """Receipts whose futures the test completes."""

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.receipts = AckTracker(lambda: self.changes.append(self.receipts.on_disk))

    def applied(self, *, complete: bool = False) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.receipts.applied(future, complete=complete)
        return future


async def test_frames_count_in_order() -> None:
    ledger = Ledger()
    first, second, third = [ledger.applied() for _ in range(3)]
    second.set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 0
    first.set_result(None)
    third.set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 3
    await asyncio.wait_for(ledger.receipts.fewer_than(1), PATIENCE)


async def test_failure_stops_the_count() -> None:
    ledger = Ledger()
    first, second = ledger.applied(), ledger.applied()
    first.set_exception(OSError("disk full"))
    second.set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 0
    assert isinstance(ledger.receipts.failure, OSError)


async def test_ack_tracker_waits_while_too_many_are_pending() -> None:
    ledger = Ledger()
    futures = [ledger.applied() for _ in range(3)]
    waiting = asyncio.create_task(ledger.receipts.fewer_than(3))
    await asyncio.sleep(0)
    assert not waiting.done()
    futures[0].set_result(None)
    await asyncio.wait_for(waiting, PATIENCE)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ledger.receipts.fewer_than(2), 0.01)
