"""Connections that have not authenticated: few, not for long, and at nobody's expense."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import resource
import socket as sockets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.server.limits import DEFAULT_SERVER_LIMITS, ServerLimits
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import call_socket, calls_of, closing, invite, sync_as
from tests.waiting import PATIENCE, until

SHORT = ServerLimits(handshake=0.3, body=0.3, stalled=0.3, heartbeat=0.1)
HANDSHAKE = (
    "GET /call HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\n"
)
BEGINNINGS = (
    "",
    "POST /call/session.who",
    "POST /call/session.whoami HTTP/1.1\r\nHost: localhost\r\nX: ",
    HANDSHAKE,
    "POST /call/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
)
"""Requests that are not whole, and one that needs no token."""


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    """A kernel that waits for nobody."""
    async with served_kernel(tmp_path, SHORT) as served:
        yield served


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def reach(
    served: ServedKernel, via: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if via == "unix":
        return await asyncio.open_unix_connection(str(served.doors.socket))
    return await asyncio.open_connection("127.0.0.1", served.doors.port)


async def whoami(served: ServedKernel, *, over_tcp: bool = False) -> str:
    calls = ToolClient(served.locate_tcp if over_tcp else served.locate)
    try:
        return str((await calls.call("session.whoami", {}))["username"])
    finally:
        await calls.close()


@contextlib.contextmanager
def silent(served: ServedKernel, count: int) -> Iterator[list[sockets.socket]]:
    """So many TCP connections over which nothing is sent."""
    held: list[sockets.socket] = []
    try:
        for _ in range(count):
            held.append(sockets.create_connection(("127.0.0.1", served.doors.port)))
        yield held
    finally:
        for one in held:
            one.close()


async def test_801_silent_connections_lock_nobody_out(
    served: ServedKernel, many_files: None
) -> None:
    def crowd() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        stack.enter_context(silent(served, 801))
        return stack

    with await asyncio.to_thread(crowd):
        assert await whoami(served) == "amy"
        assert await whoami(served, over_tcp=True) == "amy"
        assert served.doors.connections.strangers <= 4 * DEFAULT_SERVER_LIMITS.strangers
        assert served.doors.connections.members == 0, "strangers keep no kernel alive"


async def test_connection_without_a_session_is_closed_at_its_deadline(
    hasty: ServedKernel,
) -> None:
    async def begin(via: str, beginning: str) -> None:
        reader, writer = await reach(hasty, via)
        writer.write(beginning.encode())
        with contextlib.suppress(ConnectionError):
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            assert not beginning or b"HTTP/1.1 " in answer
        writer.close()

    await asyncio.gather(*(begin(via, one) for via in ("tcp", "unix") for one in BEGINNINGS))
    await until(lambda: hasty.doors.connections.strangers == 0, "nothing is left")


async def test_connection_that_drips_is_closed_at_its_deadline(hasty: ServedKernel) -> None:
    reader, writer = await reach(hasty, "tcp")
    answer = asyncio.create_task(reader.read())
    writer.write(b"POST /call/session.whoami HTTP/1.1\r\nHost: localhost\r\nX: ")
    while not answer.done():
        with contextlib.suppress(ConnectionError):
            writer.write(b"x")
            await writer.drain()
        await asyncio.sleep(0.01)
    with contextlib.suppress(ConnectionError):
        assert b" 408 " in answer.result()
    writer.close()


async def test_connection_kept_alive_after_a_call_is_a_strangers_again(hasty: ServedKernel) -> None:
    def call() -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", hasty.doors.port, timeout=PATIENCE)
        bearer = {"Authorization": f"Bearer {hasty.doors.token}"}
        connection.request("POST", "/call/session.whoami", "{}", bearer)
        assert connection.getresponse().read()
        return connection

    connection = await asyncio.to_thread(call)
    assert await asyncio.to_thread(connection.sock.recv, 1) == b"", "it is closed"
    connection.close()
    doors = hasty.doors.connections
    await until(lambda: (doors.members, doors.strangers) == (0, 0))


async def test_connection_with_a_session_stays_beyond_every_deadline(hasty: ServedKernel) -> None:
    token = (await invite(hasty))["token"]
    sync, calls = await sync_as(hasty, token), await call_socket(hasty, token)
    await sync.join()
    with silent(hasty, 1):
        await until(lambda: hasty.doors.connections.strangers == 1, "a stranger has come")
        await until(lambda: hasty.doors.connections.strangers == 0, "and gone")
    assert hasty.doors.connections.members == 2
    await calls.close()


async def test_body_held_back_by_somebody_with_a_token_has_a_deadline(hasty: ServedKernel) -> None:
    reader, writer = await reach(hasty, "tcp")
    head = (
        f"POST /call/block.create HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        f"Authorization: Bearer {hasty.doors.token}\r\n\r\n{{"
    )
    writer.write(head.encode())
    assert b" 408 " in await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    await until(lambda: hasty.doors.connections.members == 0, "its session is over")


async def test_client_of_a_room_that_never_says_what_it_has_is_closed(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(greeting=0.3, heartbeat=0.1)) as served:
        client = await served.raw()
        code, reason = await client.closed()
        assert code == 1013 and "sync step 1" in (reason or "")


async def test_answer_that_nobody_reads_is_let_go(hasty: ServedKernel) -> None:
    block = await hasty.block("x" * 4_000_000)
    with sockets.socket() as sock:
        sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 8_192)
        sock.connect(("127.0.0.1", hasty.doors.port))
        body = f'{{"block_id": "{block}"}}'
        head = (
            f"POST /call/block.read HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: Bearer {hasty.doors.token}\r\n\r\n{body}"
        )
        sock.sendall(head.encode())
        await until(lambda: hasty.doors.access.visits == 1, "it has been asked")
        await until(lambda: hasty.doors.connections.strangers == 0, "it is cut off")


async def test_strangers_beyond_the_limit_cost_the_oldest_idle_one_its_place(
    tmp_path: Path,
) -> None:
    async with served_kernel(tmp_path, ServerLimits(strangers=2)) as served:
        token = (await invite(served))["token"]
        member = await call_socket(served, token)
        oldest, writer = await reach(served, "tcp")
        with silent(served, 8):
            assert await asyncio.wait_for(oldest.read(), PATIENCE) == b""
            await until(lambda: served.doors.connections.strangers == 8, "the others stay")
            assert await whoami(served) == "amy"
            assert served.doors.connections.members >= 1
        writer.close()
        await member.close()


async def test_unix_socket_has_room_when_tcp_is_full(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(connections=1)) as served:
        await served.joined()
        assert (await (await served.raw()).closed())[0] == 1013
        assert await whoami(served) == "amy"


async def test_connections_of_one_guest_are_limited(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(connections_each=2)) as served:
        greedy, modest = [(await invite(served))["token"] for _ in range(2)]
        held = [await call_socket(served, greedy) for _ in range(2)]
        code, reason = await closing(await call_socket(served, greedy))
        assert code == 1013 and "Too many" in (reason or "")
        async with calls_of(served, modest) as calls:
            assert await calls.call("session.whoami", {})
        for socket in held:
            await socket.close()


async def test_frame_that_a_stranger_begins_is_not_read(served: ServedKernel) -> None:
    def send_all() -> int:
        key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        with sockets.create_connection(("127.0.0.1", served.doors.port), timeout=PATIENCE) as sock:
            sock.sendall((HANDSHAKE + key).encode())
            assert b" 101 " in sock.recv(65_536)
            sock.settimeout(0.3)
            sock.sendall(b"\x82\xff" + (2**25 - 1).to_bytes(8) + b"mask")
            sent = 0
            with contextlib.suppress(OSError):
                while sent < 2**25 - 1:
                    sent += sock.send(b"x" * 2**16)
            return sent

    assert await asyncio.to_thread(send_all) < 2**24, "buffers of the system take less"
