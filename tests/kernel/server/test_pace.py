"""How fast clients may write, call and connect; and pauses where they collect something."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket as sockets
import time
import tracemalloc
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.rate_limits import BatchPause, RateLimiter, TokenBucket
from antiphon_kernel.server.sync.send_queue import SendQueue, StateRequest
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.frames import (
    AwarenessEntry,
    AwarenessUpdate,
    PermissionDenied,
    SyncUpdate,
    encode_awareness,
    encode_frame,
)
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import call_socket, calls_of, invite, post
from tests.waiting import until

SLOW = ServerLimits(
    messages_per_second=10,
    messages_at_once=5,
    bytes_per_second=1000,
    bytes_at_once=1000,
    overload_grace=2.0,
)


class Watch:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_bucket_gives_its_burst_at_once_and_its_rate_from_then_on() -> None:
    watch = Watch()
    bucket = TokenBucket(10, 5, watch)
    assert [bucket.take(1) for _ in range(5)] == [0] * 5
    assert bucket.take(1) == 0.1
    watch.now += 0.1
    assert bucket.take(1) == 0.1
    watch.now += 100
    assert [bucket.take(1) for _ in range(6)] == [0] * 5 + [0.1]


def test_rate_limiter_is_exhausted_only_without_pauses() -> None:
    watch = Watch()
    pace = RateLimiter(SLOW, watch)
    for _ in range(40):
        watch.now += pace.received(1)
    assert pace.exhausted
    watch.now += 1
    pace.received(1)
    assert not pace.exhausted


def test_kernel_that_is_late_in_reading_does_not_take_that_for_a_pause() -> None:
    watch = Watch()
    pace = RateLimiter(SLOW, watch)
    for _ in range(40):
        watch.now += pace.received(1) + 0.15
        pace.received(1)
    assert pace.exhausted


async def test_writer_that_never_stops_is_told_before_it_is_closed(tmp_path: Path) -> None:
    limits = ServerLimits(messages_per_second=200, messages_at_once=100, overload_grace=0.3)
    async with served_kernel(tmp_path, limits) as served:
        client = await served.joined()

        async def write() -> None:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    for _ in range(50):
                        await client.socket.send(encode_frame(SyncUpdate(b"\x00\x00")))
                    await asyncio.sleep(0)  # the kernel is in this loop too

        writing = asyncio.create_task(write())
        denied = await client.next(PermissionDenied)
        assert denied.reason.startswith("rate_limited: ")
        assert (await client.closed())[0] == 1013
        await writing


async def test_presence_of_silent_client_expires_and_returns_with_message(tmp_path: Path) -> None:
    limits = ServerLimits(presence_expiry=0.3, heartbeat=0.1)
    async with served_kernel(tmp_path, limits) as served:
        ben = await served.replica("ben")
        client = await served.joined()
        hello = AwarenessUpdate(encode_awareness([AwarenessEntry(7, 1, {"activity": "idle"})]))
        for _ in range(2):
            await client.send(hello)
            await until(lambda: 7 in ben.awareness.others, "it is here")
            await until(lambda: 7 not in ben.awareness.others, "it is gone")


def test_presence_that_nobody_reads_is_dropped() -> None:
    outgoing = SendQueue(1_000, lambda _: False)
    for _ in range(100):
        outgoing.put(b"x" * 100)
        outgoing.state(b"\x00")
    assert outgoing.size <= 1_000
    taken = [outgoing.take() for _ in range(3)]
    assert sum(isinstance(one, StateRequest) for one in taken) == 1
    assert outgoing.take_missed() is not None


LENGTH = 0.005


class Writer:
    """Sends one thing after the other to somebody who takes them in batches and pauses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pause = BatchPause(LENGTH, 16, lambda: self.now)

    def steady(self, interval: float, things: int) -> list[int]:
        """Sizes of the batches when a thing comes every so often, whatever has become of others."""
        sizes: list[int] = []
        come = self.now
        while sum(sizes) < things:
            come = max(come, self.now)
            first, size = come, 1
            free = first + self.pause.after(sizes[-1] if sizes else 1)
            while come + interval <= free:
                come += interval
                size += 1
            come += interval
            self.now = free
            sizes.append(size)
        return sizes

    def waiting(self, interval: float, things: int) -> list[float]:
        """The pauses when each thing comes so long after the one before was read."""
        pauses: list[float] = []
        for _ in range(things):
            self.now += interval
            pauses.append(self.pause.after(1))
            self.now += pauses[-1]
        return pauses


@pytest.fixture
def writer() -> Writer:
    return Writer()


def test_steady_fast_writer_is_read_in_batches(writer: Writer) -> None:
    sizes = writer.steady(0.001, 1_000)
    assert len(sizes) < 250


def test_person_who_types_is_never_made_to_wait(writer: Writer) -> None:
    assert not any(writer.waiting(0.02, 1_000))


def test_writer_who_waits_for_each_answer_is_seldom_made_to_wait(writer: Writer) -> None:
    pauses = writer.waiting(0.0005, 5_000)
    assert 1 <= sum(map(bool, pauses)) <= 12


def test_batch_that_is_large_enough_is_followed_by_no_pause() -> None:
    pause = BatchPause(LENGTH, 16, lambda: 100.0)
    assert [pause.after(size) for size in (15, 16, 100)] == [LENGTH, 0.0, 0.0]


def test_writer_of_large_bursts_is_kept_waiting_shorter_and_shorter() -> None:
    pause = BatchPause(LENGTH, 16, lambda: 100.0)
    pauses = [pause.after(size) for size in (8, 80, 8, 80, 8)]
    assert pauses == pytest.approx([LENGTH, 0.0, LENGTH / 5, 0.0, LENGTH / 25])


def test_writer_who_slows_down_is_waited_for_as_long_as_before(writer: Writer) -> None:
    for size in (8, 800, 8, 800):
        writer.pause.after(size)
    sizes = writer.steady(0.001, 1_000)
    assert len(sizes) < 250


def post_often(served: ServedKernel, token: str, count: int) -> None:
    """Calls over one HTTP connection that is kept."""
    request = (
        "POST /call/context.list HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        f"Authorization: Bearer {token}\r\n\r\n{{}}"
    ).encode()
    with sockets.create_connection(("127.0.0.1", served.doors.port)) as sock:
        for _ in range(count):
            sock.sendall(request)
            answer = b""
            while not answer.endswith(b"}"):
                answer += sock.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200 "), answer


async def recorded(served: ServedKernel) -> list[str]:
    return [one.via for one in await served.kernel.journal.sessions()]


async def test_calls_over_http_leave_no_row_and_no_memory(served: ServedKernel) -> None:
    token = (await invite(served, "viewer", name="vera"))["token"]
    gc.freeze()  # what other tests have left is not looked through
    tracemalloc.start()
    await asyncio.to_thread(post_often, served, token, 50)
    before = await recorded(served)
    gc.collect()
    actors = sum(isinstance(one, Actor) for one in gc.get_objects())
    taken = tracemalloc.get_traced_memory()[0]
    await asyncio.to_thread(post_often, served, token, 250)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - taken
    tracemalloc.stop()
    assert await recorded(served) == before
    assert before.count("tcp") == 1, "that somebody joined is recorded once"
    assert sum(isinstance(one, Actor) for one in gc.get_objects()) <= actors
    assert grown < 250 * 80, "less than what an entry of a table takes"


async def test_session_of_a_call_is_recorded_with_what_it_commits(served: ServedKernel) -> None:
    block = {"role": "user", "kind": "text"}
    token = (await invite(served, name="ed"))["token"]
    for _ in range(3):
        await post(served, token, "session.whoami", {})
        made = await post(served, token, "block.create", block)
        assert made[0] == 200
    sessions = await served.kernel.journal.sessions()
    ed = (await served.kernel.principal("ed")).id
    assert [one.via for one in sessions if one.principal == ed] == ["tcp"] * 4


@pytest.mark.parametrize("door", ["http", "websocket"])
async def test_calls_of_a_guest_beyond_the_rate_have_to_wait(tmp_path: Path, door: str) -> None:
    limits = ServerLimits(calls_per_second=50, calls_at_once=5)
    async with served_kernel(tmp_path, limits) as served:
        token = (await invite(served, "viewer"))["token"]
        start = time.monotonic()
        if door == "http":
            await asyncio.to_thread(post_often, served, token, 20)
        else:
            async with calls_of(served, token) as calls:
                for _ in range(20):
                    await calls.call("session.whoami", {})
        assert time.monotonic() - start > (20 - 5 - 2) / 50


async def test_calls_of_the_owner_do_not_wait(tmp_path: Path) -> None:
    # Else this would take longer than a test may.
    async with served_kernel(
        tmp_path, ServerLimits(calls_per_second=0.001, calls_at_once=1)
    ) as one:
        await asyncio.to_thread(post_often, one, one.doors.token, 20)


async def test_guest_who_connects_again_and_again_is_told_to_wait(tmp_path: Path) -> None:
    limits = ServerLimits(connects_per_second=0.1, connects_at_once=2)
    async with served_kernel(tmp_path, limits) as served:
        token = (await invite(served, "viewer"))["token"]
        for _ in range(2):
            await (await call_socket(served, token)).close()
        third = await call_socket(served, token)
        await third.wait_closed()
        assert third.close_code == 1013 and "too often" in (third.close_reason or "")


async def test_member_who_was_dismissed_is_listed_without_sessions(served: ServedKernel) -> None:
    token = (await invite(served, "viewer", name="vera"))["token"]
    socket = await call_socket(served, token)
    socket.transport.pause_reading()
    await socket.send('{"id": 1, "tool": "session.whoami"}')
    ended = await served.call("kernel.kick", principal="vera")
    listed = (await served.call("kernel.members"))["members"]
    assert ended["ended"] == 1
    assert [one["sessions"] for one in listed if one["username"] == "vera"] == [[]]
    socket.transport.abort()
