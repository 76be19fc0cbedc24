"""Whatever goes wrong on one connection, or on the disk, the others go on and nothing is lost.

The failures that the library's own rooms were seen to have are in `test_room_failures.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon_kernel.client.state import ReplicaState
from antiphon_kernel.document.document import Document
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.yjs.frames import SyncStep2, SyncUpdate
from antiphon_kernel.yjs.varint import write_var_uint
from tests.kernel.served import ServedKernel, served_kernel
from tests.waiting import until


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    """Doors that soon have enough of a slow reader."""
    limits = ServerLimits(unread=256 * 1024, heartbeat=0.2, stalled=0.5, frame=2**20)
    async with served_kernel(tmp_path, limits) as served:
        yield served


async def append(served: ServedKernel, block: str, text: str) -> None:
    await served.call("block.append", block_id=block, text=text)


async def test_client_that_drops_in_mid_sentence_loses_nothing_it_had_sent(
    served: ServedKernel,
) -> None:
    block = await served.block()
    reader = await served.replica()
    leaver = await served.raw()
    document = Document(77)
    document.apply_update((await leaver.join()).update)
    updates: list[bytes] = []
    document.watch_updates(lambda update, _: updates.append(update))
    for number in range(1000):
        document.append(block, f"{number} ")
    for update in updates:
        await leaver.send(SyncUpdate(update))
    await leaver.socket.close()
    await until(lambda: reader.document.text(block) == document.text(block))


async def test_slow_reader_gets_the_state_in_place_of_what_it_missed(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(unread=128 * 1024)) as served:
        block = await served.block()
        slow = await served.slow_reader()
        document = Document(9)
        document.apply_update((await slow.join()).update)
        quick = await served.replica()
        rounds, chunk = 150, "x" * 99_999 + "\n"
        for _ in range(rounds):
            await append(served, block, chunk)
            operation = {"op": "delete", "start_line": 0, "end_line": 1}
            await served.kernel.call(
                served.me, "block.edit", {"block_id": block, "operations": [operation]}
            )
        await append(served, block, "the end")
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
    before = strict.doors.connections
    for _ in range(75):
        await append(strict, block, "x" * 100_000)
    await until(lambda: len(quick.document.text(block)) == 7_500_000)
    await until(lambda: strict.doors.connections == before - 1, "the stalled client is cut off")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"", 4400),
        (b"\x63", 4400),
        (b"\x00\x02", 4400),
        (b"\x00\x07\x00", 4400),
        (b"\x00\x02\x05abc", 4400),
        (b"\x00\x00\x05" + write_var_uint(2**28), 4400),
        (b"\x01\x05" + write_var_uint(2**28), 4400),
        (b"\x01\x06\x01\x01\x01\x03abc", 4400),
        (b"\x02\x00\x00", 4400),
        (b"text", 4400),
        ("text", 1003),
        (b"\x00" * (2**20 + 1), 1009),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_malformed_frame_closes_only_that_connection(
    strict: ServedKernel, message: bytes | str, code: int
) -> None:
    block = await strict.block("fine")
    healthy = await strict.replica()
    bad = await strict.joined()
    await bad.send(message)
    assert (await bad.closed())[0] == code
    await append(strict, block, ".")
    await until(lambda: healthy.document.text(block) == "fine.")


@pytest.mark.parametrize(
    "update",
    [
        write_var_uint(2**28),
        b"\x01" + write_var_uint(2**28),
        b"\x01\x01\x01\x00\x04\x01\x01t\x05ab",
        bytes(range(256)),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_malformed_update_closes_only_that_connection(
    served: ServedKernel, update: bytes
) -> None:
    block = await served.block("fine")
    healthy = await served.replica()
    bad = await served.joined()
    await bad.send(SyncUpdate(update))
    code, _ = await bad.closed()
    assert code in (4400, 4403)
    await append(served, block, ".")
    await until(lambda: healthy.document.text(block) == "fine.")


async def test_update_before_the_first_step_is_malformed(served: ServedKernel) -> None:
    bad = await served.raw()
    await bad.send(SyncUpdate(b"\x00\x00"))
    assert (await bad.closed())[0] == 4400


async def test_room_without_clients_releases_context(served: ServedKernel) -> None:
    block = await served.block("a")
    for _ in range(3):
        client = await served.joined()
        await client.socket.close()
        await until(lambda: served.doors.rooms == 0, "the room is gone")
    reader = await served.replica()
    await append(served, block, "b")
    await until(lambda: reader.document.text(block) == "ab")


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


async def test_server_close_notifies_clients(served: ServedKernel) -> None:
    client = await served.joined()
    await served.doors.close()
    code, reason = await client.closed()
    assert code == 1012
    assert reason == "The kernel is shutting down."
