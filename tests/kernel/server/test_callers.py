"""Guests who call and call: what they leave behind, and how fast they may be."""

from __future__ import annotations

import asyncio
import gc
import socket as sockets
import time
import tracemalloc
from pathlib import Path

import pytest

from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.types.records import Actor
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import call_socket, calls_of, invite, post


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
    await asyncio.to_thread(post_often, served, token, 100)
    before = await recorded(served)
    gc.collect()
    actors = sum(isinstance(one, Actor) for one in gc.get_objects())
    taken = tracemalloc.get_traced_memory()[0]
    await asyncio.to_thread(post_often, served, token, 500)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - taken
    tracemalloc.stop()
    assert await recorded(served) == before
    assert before.count("tcp") == 1, "that somebody joined is recorded once"
    assert sum(isinstance(one, Actor) for one in gc.get_objects()) <= actors
    assert grown < 500 * 50, "less than what an entry of a table takes"


async def test_connections_of_a_guest_are_recorded_when_they_join(served: ServedKernel) -> None:
    token = (await invite(served, "viewer", name="vera"))["token"]
    for _ in range(5):
        async with calls_of(served, token) as calls:
            await calls.call("session.whoami", {})
    assert (await recorded(served)).count("tcp") == 1


async def test_session_of_a_call_is_recorded_with_what_it_commits(served: ServedKernel) -> None:
    block = {"role": "user", "kind": "text"}
    token = (await invite(served, name="ed"))["token"]
    for _ in range(3):
        await asyncio.to_thread(post, served, token, "session.whoami", {})
        made = await asyncio.to_thread(post, served, token, "block.create", block)
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
