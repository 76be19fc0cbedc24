"""A fast writer is slowed down, then told; who is silent about themselves is not shown for ever."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from websockets.exceptions import ConnectionClosed

from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.rate_limits import RateLimiter, TokenBucket
from antiphon_kernel.server.sync.send_queue import SendQueue, StateRequest
from antiphon_kernel.yjs.awareness import AwarenessEntry, encode_awareness
from antiphon_kernel.yjs.frames import (
    AwarenessUpdate,
    PermissionDenied,
    SyncUpdate,
    encode_frame,
)
from tests.kernel.served import served_kernel
from tests.waiting import until


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
    pace = RateLimiter(TokenBucket(10, 5, watch), TokenBucket(1000, 1000, watch), 2.0, watch)
    for _ in range(40):
        watch.now += pace.received(1)
    assert pace.exhausted
    watch.now += 1
    pace.received(1)
    assert not pace.exhausted


def test_kernel_that_is_late_in_reading_does_not_take_that_for_a_pause() -> None:
    watch = Watch()
    pace = RateLimiter(TokenBucket(10, 5, watch), TokenBucket(1000, 1000, watch), 2.0, watch)
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
        outgoing.frame(b"x" * 100)
        outgoing.state(b"\x00")
    assert outgoing.size <= 1_000
    taken = [outgoing.take() for _ in range(3)]
    assert sum(isinstance(one, StateRequest) for one in taken) == 1
    assert outgoing.take_missed() is not None


async def test_connections_beyond_limit_are_rejected(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(connections=3)) as served:
        for _ in range(3):
            await (await served.raw()).join()
        code, reason = await (await served.raw()).closed()
        assert code == 1013
        assert reason is not None and "Too many" in reason
