"""Failures of one connection or of the disk: the others go on and nothing is lost.

The failures of pycrdt-websocket's rooms, each event tried on ours:

| event | what it did to the library's room | test |
|---|---|---|
| unreadable frames | swallowed without a word | `test_unreadable_frames` |
| a text frame | KeyError | `test_text_frame` |
| a bomb of five bytes | the loop stood for up to 1.9 s, 536 MB | `test_bomb_of_five_bytes` |
| abrupt disconnects | the server stopped | `test_room_survives_client_abort` |
| an abort at 500 of 1000 | stuck at 501, 310 rows left | `test_room_survives_client_abort` |
| five join at once | one served, four hang | `test_five_join_a_room_that_has_not_started` |
| 70,000 at once | what came after 65,536 was dropped | `test_burst_beyond_the_queue_arrives` |
| one never reads | unbounded tasks and memory | `test_room_bounds_queue_of_unread_client` |
| message size | no limit of its own | `test_messages_up_to_the_limit_and_over` |
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import socket as sockets
import time
import tracemalloc
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.document.document import Document
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.sync.connection import SyncConnection
from antiphon_kernel.server.websocket import WebSocketProtocol
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode
from antiphon_kernel.yjs.frames import SyncStep1, SyncStep2, SyncUpdate, encode_frame
from antiphon_kernel.yjs.primitives import write_var_uint
from tests.kernel.served import ServedKernel, served_kernel
from tests.processes import watched
from tests.waiting import PATIENCE, until

READERS = 3
BURST = 200


async def append(served: ServedKernel, block: str, text: str) -> None:
    await served.call("block.append", block_id=block, text=text)


def connections(served: ServedKernel) -> list[SyncConnection]:
    """Those of the owner's that something holds on to."""
    gc.collect()
    found = [one for one in gc.get_objects() if type(one) is SyncConnection]
    return [one for one in found if one.actor.principal == served.kernel.owner]


UNREADABLE = {
    "empty": b"",
    "unknown": b"\x63",
    "unknown sync message": b"\x00\x07\x00",
    "cut short": b"\x00\x02",
    "cut short in the update": b"\x00\x02\x05abc",
    "unknown message": b"\x02\x00\x00",
    "garbage as awareness": b"\x01\x06\x01\x01\x01\x03abc",
    "garbage": bytes(range(3, 256)),
    "letters": b"text",
}


async def test_unreadable_frames(served: ServedKernel) -> None:
    """Send one: the sender is told and goes, the others do not notice."""
    block = await served.block()
    healthy = await served.replica()

    def has_dots(count: int) -> bool:
        return healthy.document.text(block) == "." * count

    for number, frame in enumerate(UNREADABLE.values(), 1):
        bad = await served.joined()
        await bad.send(frame)
        code, reason = await bad.closed()
        assert code == 4400
        assert reason
        await append(served, block, ".")
        await until(partial(has_dots, number))


async def test_text_frame(served: ServedKernel) -> None:
    block = await served.block()
    healthy = await served.replica()
    bad = await served.joined()
    await bad.send("text")
    assert await bad.closed() == (1003, "A sync connection takes binary frames, not text.")
    await append(served, block, ".")
    await until(lambda: healthy.document.text(block) == ".")


BOMB = write_var_uint(2**28)


BOMBS = {
    "update": b"\x00\x02\x05" + BOMB,
    "step 2": b"\x00\x01\x05" + BOMB,
    "state vector": b"\x00\x00\x05" + BOMB,
    "awareness": b"\x01\x05" + BOMB,
}


async def test_bomb_of_five_bytes(served: ServedKernel) -> None:
    """No count is believed before as many bytes are there."""
    block = await served.block()
    healthy = await served.replica()
    clients = {name: await served.joined() for name in BOMBS}
    async with watched() as stall:
        for name, client in clients.items():
            await client.send(BOMBS[name])
        for name, client in clients.items():
            assert (await client.closed())[0] in (4400, 4403), name
    assert stall.seconds < 0.25
    await append(served, block, ".")
    await until(lambda: healthy.document.text(block) == ".")


async def test_room_survives_client_abort(served: ServedKernel) -> None:
    """All readers get it all, all is on disk, and nothing of aborted clients is held."""
    block = await served.block()
    readers = [await served.replica() for _ in range(READERS)]
    writer, leaver = await served.writer(), await served.joined()
    for number in range(60):
        await writer.append(block, f"{number} ".rjust(4_000))
        if number % 20 == 10:
            await until(lambda: readers[0].document.length(block) > 20_000, "traffic goes on")
            leaver.socket.transport.abort()
            leaver = await served.joined()
    leaver.socket.transport.abort()
    text = writer.document.text(block)
    await until(lambda: all(reader.document.text(block) == text for reader in readers))
    served.forget_raw()
    await until(
        lambda: len(connections(served)) == READERS + 1, "nothing of the aborted ones is held"
    )
    await writer.client.socket.close()
    await served.stop()
    await served.start()
    assert (await served.context()).document.text(block) == text


async def test_five_join_a_room_that_has_not_started(served: ServedKernel) -> None:
    block = await served.block("here")
    await served.stop()
    await served.start()
    assert len(served.doors.replicas.rooms) == 0
    clients = [await served.raw() for _ in range(5)]
    states = await asyncio.gather(*(client.join() for client in clients))
    for state in states:
        document = Document(1)
        document.apply_update(state.update)
        assert document.text(block) == "here"
    assert len(served.doors.replicas.rooms) == 1
    await append(served, block, "!")
    for client in clients:
        await client.next(SyncUpdate)


async def test_burst_beyond_the_queue_arrives(tmp_path: Path) -> None:
    limits = ServerLimits(unread=16 * 1024)
    async with served_kernel(tmp_path, limits) as served:
        block = await served.block()
        context = await served.context()
        reader = await served.replica()
        (connection,) = connections(served)
        for number in range(BURST):
            add = partial(context.document.append, block, f"{number} ".rjust(4_000))
            context.write(served.me, "burst", add, blocks=[block], undo=None)
        await context.wait_persisted()
        assert connection.outgoing.size <= limits.unread
        text = context.document.text(block)
        await until(lambda: reader.document.text(block) == text)
        assert text.endswith(f" {BURST - 1} ")


async def test_room_bounds_queue_of_unread_client(tmp_path: Path) -> None:
    """1,500 times a kilobyte: the healthy reader has it all, the other's queue is bounded."""
    # Nobody is cut off for being slow, however long a busy machine takes for this.
    limits = ServerLimits(unread=256 * 1024, heartbeat=0.2, stalled=3600)
    async with served_kernel(tmp_path, limits) as served:
        blocks = [await served.block() for _ in range(10)]
        slow = await served.slow_reader()
        await slow.join()
        healthy = await served.replica()
        context = await served.context()
        both = connections(served)
        assert len(both) == 2
        most = 0
        for block in blocks:
            for _ in range(150):
                context.write(
                    served.me,
                    "burst",
                    partial(context.document.append, block, "x" * 1_000),
                    blocks=[block],
                    undo=None,
                )
            await context.wait_persisted()
            most = max(most, *(one.outgoing.size for one in both))
        vector = context.document.state_vector()
        await until(lambda: healthy.document.state_vector() == vector)
        assert served.doors.connections.members == 2
        assert all(healthy.document.length(block) == 150_000 for block in blocks)
        assert 0 < most <= limits.unread


async def test_messages_up_to_the_limit_and_over(tmp_path: Path) -> None:
    """Send what was written offline in one frame, and more than the limit in another."""
    async with served_kernel(tmp_path, ServerLimits(frame=2_000_000)) as served:
        await send_up_to_the_limit_and_over(served, 2_000_000)


async def send_up_to_the_limit_and_over(served: ServedKernel, limit: int) -> None:
    reader = await served.replica()
    context, owner = await served.context(), served.kernel.owner
    writer = await served.writer()
    document, before = writer.document, writer.document.state_vector()
    drafts = [f"{context.id}.{owner.id}.{DRAFT_SEQ_MIN + number}" for number in range(3)]
    for draft in drafts:
        header = BlockHeader(
            id=draft,
            kind=BlockKind.TEXT,
            role=Role.USER,
            status=Status.PENDING,
            order="a5",
            created="2026-01-01T00:00:00.000Z",
            author=owner.id,
        )
        document.create_block(header, "y" * (limit // 3 - 1_000))
    update = document.update_since(before)
    assert limit - 3_000 < len(update) < limit
    await writer.client.send(SyncUpdate(update))
    await until(
        lambda: all(
            draft in reader.document and reader.document.length(draft) == limit // 3 - 1_000
            for draft in drafts
        )
    )
    with contextlib.suppress(ConnectionClosed):
        # The kernel hangs up while it is still being sent.
        await writer.client.send(b"\x00" * (limit + 1))
    assert (await writer.client.closed())[0] == 1009
    await append(served, drafts[0], "!")
    await until(lambda: reader.document.length(drafts[0]) == limit // 3 - 999)


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    """Doors that soon have enough of a slow reader."""
    limits = ServerLimits(unread=256 * 1024, heartbeat=0.2, stalled=0.5)
    async with served_kernel(tmp_path, limits) as served:
        yield served


async def test_slow_reader_gets_the_state_in_place_of_what_it_missed(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(unread=128 * 1024)) as served:
        block = await served.block()
        slow = await served.slow_reader()
        document = Document(9)
        document.apply_update((await slow.join()).update)
        quick = await served.replica()
        rounds, size = 60, 0
        for _ in range(rounds):
            change = {"offset": 0, "delete_count": size, "insert": "x" * 150_000}
            await served.call("block.splice", block_id=block, **change)
            size = 150_000
        change = {"offset": 0, "delete_count": size, "insert": "the end"}
        await served.call("block.splice", block_id=block, **change)
        context = await served.context()
        await until(lambda: quick.document.text(block) == "the end")
        frames = 0
        while document.state_vector() != context.document.state_vector():
            frame = await slow.any()
            if isinstance(frame, SyncUpdate | SyncStep2):
                document.apply_update(frame.update)
                frames += 1
        assert document.text(block) == "the end"
        assert any(isinstance(frame, SyncStep2) for frame in slow.received[3:])
        assert frames < rounds


async def test_client_that_never_reads_is_cut_off(strict: ServedKernel) -> None:
    block = await strict.block()
    slow = await strict.slow_reader()
    await slow.join()
    quick = await strict.replica()
    before = strict.doors.connections.members
    for _ in range(12):
        await append(strict, block, "x" * 500_000)
    await until(lambda: quick.document.length(block) == 6_000_000)
    begun = time.monotonic()
    await until(
        lambda: strict.doors.connections.members == before - 1, "the stalled client is cut off"
    )
    assert time.monotonic() - begun < 15, "it was cut off as it did not answer a ping"


async def test_update_before_the_first_step_is_malformed(served: ServedKernel) -> None:
    bad = await served.raw()
    await bad.send(SyncUpdate(b"\x00\x00"))
    assert (await bad.closed())[0] == 4400


async def test_room_without_clients_releases_context(served: ServedKernel) -> None:
    block = await served.block("a")
    for _ in range(3):
        client = await served.joined()
        await client.socket.close()
        await until(lambda: len(served.doors.replicas.rooms) == 0, "the room is gone")
    reader = await served.replica()
    await append(served, block, "b")
    await until(lambda: reader.document.text(block) == "ab")


@pytest.mark.sqlite
async def test_replicas_after_failed_commit_converge_on_stored_state(served: ServedKernel) -> None:
    block = await served.block("on disk")
    amy, ben = await served.replica(), await served.replica("ben")
    old = await served.context()
    await served.break_disk()
    amy.document.append(block, " and kept by its author")
    await until(lambda: amy.state is not ReplicaState.LIVE)
    await served.mend_disk()
    await amy.saved()
    text = "on disk and kept by its author"
    await until(lambda: ben.document.text(block) == text)
    new = await served.context()
    assert new is not old
    assert new.document.text(block) == text


@pytest.mark.sqlite
async def test_server_close_notifies_clients(served: ServedKernel) -> None:
    client = await served.joined()
    await served.doors.close()
    code, reason = await client.closed()
    assert code == 1012
    assert reason == "The kernel is shutting down."


@pytest.mark.sqlite
async def test_client_that_comes_while_the_kernel_ends_is_told_so(served: ServedKernel) -> None:
    await served.kernel.close()
    client = await served.raw()
    assert await client.closed() == (CloseCode.RESTART, SHUTTING_DOWN)


def refused(replica: Replica) -> bool:
    return replica.state is ReplicaState.REFUSED


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "data" / "journal.db"


@pytest.mark.sqlite
async def test_connections_after_loss_of_journal_are_closed_with_reason(
    served: ServedKernel, journal: Path
) -> None:
    block = await served.block("hello")
    typist, reader = await served.replica("ben"), await served.replica("eve")
    journal.unlink()
    typist.document.append(block, " world")
    for replica in (typist, reader):
        await until(partial(refused, replica))
        assert replica.rejection_code == CloseCode.STORAGE_LOST
        assert replica.rejection == str(served.kernel.journal.lost)
    assert typist.outbox.unsaved == 1


@pytest.mark.sqlite
async def test_connection_after_loss_of_journal_is_closed_with_reason(
    served: ServedKernel, journal: Path
) -> None:
    journal.unlink()
    with pytest.raises(AntiphonError):
        await served.block("hello")
    client = await served.raw()
    assert (await client.closed())[0] == CloseCode.STORAGE_LOST


@pytest.mark.sqlite
async def test_calls_go_on_reading_and_subscriptions_end(
    served: ServedKernel, journal: Path
) -> None:
    block = await served.block("hello")
    calls = ToolClient(served.locate)
    subscription = await served.kernel.subscriptions.open(served.me, [await served.context()], None)
    journal.unlink()
    with pytest.raises(AntiphonError, match="Nothing more is saved"):
        await calls.call("block.append", {"block_id": block, "text": " world"})
    assert (await calls.call("block.read", {"block_id": block}))["content"] == "hello"
    exported = await calls.call("context.export", {})
    assert "hello" in str(exported)
    with pytest.raises(AntiphonError, match="Nothing more is saved"):
        async for _ in subscription:
            pass
    await calls.close()


SENT = 5 * 2**20
HELD = 3 * 2**20
REFUSED = b"\x63" * 200_000
"""A message that is no frame of ours."""


def masked(message: bytes) -> bytes:
    return b"\x82\xff" + len(message).to_bytes(8, "big") + bytes(4) + message


def pour(port: int, token: str, *messages: bytes) -> None:
    """Join a room, then send `messages` again and again, whatever the kernel says to that."""
    head = (
        "GET /sync/default HTTP/1.1",
        "Host: localhost",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
        f"Authorization: Bearer {token}",
    )
    data = b"".join(map(masked, messages))
    with sockets.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sock.sendall("\r\n".join((*head, "", "")).encode())
        assert sock.recv(4096).startswith(b"HTTP/1.1 101 ")
        sock.sendall(masked(encode_frame(SyncStep1(b"\x00"))))
        # The kernel may have hung up before all is sent.
        with contextlib.suppress(ConnectionError):
            for _ in range(SENT // len(data)):
                sock.sendall(data)


@pytest.mark.parametrize(
    "messages",
    [(REFUSED,), (b"\x63", REFUSED), (b"",) * 4_000],
    ids=["large", "mixed", "empty"],
)
async def test_client_that_sends_on_after_a_refusal_fills_no_memory(
    served: ServedKernel, messages: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client never answers the close: the kernel hangs up once this is over.
    hang_up = property(lambda _: 1.0, lambda _, seconds: None)
    monkeypatch.setattr(WebSocketProtocol, "close_timeout", hang_up, raising=False)
    token = served.locate_tcp().token
    assert token is not None
    tracemalloc.start()
    await asyncio.to_thread(pour, served.doors.port, token, *messages)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HELD
