"""Frames of a connection: those that come, those that wait for a slow reader, acknowledged ones."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pycrdt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from antiphon_kernel.server.sync.connection import AckTracker
from antiphon_kernel.server.sync.send_queue import (
    SendQueue,
    StateRequest,
    UpdateFrame,
    whole_message,
)
from antiphon_kernel.server.websocket import MessageSplitter
from antiphon_kernel.yjs.frames import SyncStep2, SyncUpdate, decode_frame, encode_frame
from antiphon_kernel.yjs.id_set import decode_state_vector, encode_state_vector
from tests.waiting import PATIENCE


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 100_000])
def test_message_is_one_frame_as_a_server_sends_it(size: int) -> None:
    payload = bytes(size)
    frame = Frame(Opcode.BINARY, payload)
    assert whole_message(payload) == frame.serialize(mask=False)
    text = Frame(Opcode.TEXT, payload)
    assert whole_message(payload.decode()) == text.serialize(mask=False)


@pytest.mark.parametrize("seed", range(3))
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
            outgoing.put(name)
        else:
            outgoing.put(UpdateFrame(name))
        due.append(name)
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
    while len(sent) < len(due):
        await asyncio.sleep(0)
    assert [one[-4:] for one in sent] == due
    writer.cancel()


@pytest.mark.parametrize("seed", range(3))
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
            outgoing.put(UpdateFrame(update))
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


LIMIT = 70_000
Event = tuple[int, bytes, bool]


class Library:
    """The library's parser behind its handshake."""

    def __init__(self) -> None:
        self.parser = ServerProtocol(max_size=LIMIT, state=OPEN)
        self.events: list[Event] = []

    def read(self, data: bytes) -> None:
        if not data:
            return
        self.parser.receive_data(data)
        for event in self.parser.events_received():
            assert not isinstance(event, Request)
            assert isinstance(event, Frame)
            self.events.append((event.opcode, bytes(event.data), event.fin))

    @property
    def failure(self) -> str:
        return repr(self.parser.parser_exc)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data cut at some places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[at:to] for at, to in zip([0, *places], [*places, len(data)], strict=True)]


def read_both(data: bytes, cuts: list[int]) -> tuple[Library, Library]:
    """The library alone, and the library behind the splitter, which has the same events."""
    alone, behind, splitter = Library(), Library(), MessageSplitter(LIMIT)
    for piece in in_pieces(data, cuts):
        alone.read(piece)
        for messages, others in splitter.split(piece):
            behind.events += [(Opcode.BINARY, message, True) for message in messages]
            behind.read(others)
    return alone, behind


def written(frame: tuple[Opcode, bytes, bool]) -> bytes:
    opcode, payload, fin = frame
    return Frame(opcode, payload, fin).serialize(mask=True)


def message(opcode: Opcode, parts: list[bytes]) -> bytes:
    frames = [(opcode if not at else Opcode.CONT, part, False) for at, part in enumerate(parts)]
    frames[-1] = (*frames[-1][:2], True)
    return b"".join(map(written, frames))


payloads = st.one_of(
    st.binary(max_size=20), st.sampled_from([b"x" * 125, b"y" * 126, b"z" * 66_000])
)
messages = st.builds(
    message,
    st.just(Opcode.BINARY),
    st.lists(payloads, min_size=1, max_size=3),
)
pings = st.builds(
    lambda kind, data: written((kind, data, True)),
    st.sampled_from([Opcode.PING, Opcode.PONG]),
    st.binary(max_size=20),
)
endings = st.one_of(
    st.just(b""),
    st.binary(min_size=1, max_size=20),
    st.just(written((Opcode.CLOSE, b"\x03\xe8", True)) + written((Opcode.BINARY, b"late", True))),
    st.just(Frame(Opcode.BINARY, b"unmasked").serialize(mask=False)),
    st.just(written((Opcode.CONT, b"of nothing", True))),
    st.just(written((Opcode.BINARY, b"x" * (LIMIT + 1), True))),
    st.just(written((Opcode.BINARY, b"never ends", False)) * 2),
)


@given(st.lists(messages | pings, max_size=6), endings, st.lists(st.integers(0), max_size=8))
def test_splitter_before_the_library_gives_what_the_library_alone_gives(
    frames: list[bytes], ending: bytes, cuts: list[int]
) -> None:
    # Whatever header has begun is whole with these: the splitter holds it back until then.
    alone, behind = read_both(b"".join(frames) + ending + bytes(14), cuts)
    assert behind.events == alone.events
    assert behind.failure == alone.failure


def test_message_in_one_frame_is_not_left_to_the_library() -> None:
    splitter = MessageSplitter(LIMIT)
    sent = b"".join(written((Opcode.BINARY, word, True)) for word in (b"one", b"", b"two"))
    assert list(splitter.split(sent)) == [([b"one", b"", b"two"], b"")]


def test_message_is_found_behind_one_that_came_in_parts() -> None:
    splitter = MessageSplitter(LIMIT)
    one, two = (written((Opcode.BINARY, word, True)) for word in (b"one", b"two"))
    assert list(splitter.split(one[:7])) == [([], one[:7])]
    assert list(splitter.split(one[7:] + two[:1])) == [([], one[7:])]
    assert list(splitter.split(two[1:])) == [([b"two"], b"")]
