"""Memory of the server for a client that sends faster than it is taken up."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket as sockets
import tracemalloc

import pytest

from antiphon_kernel.server.websocket import WebSocketProtocol
from antiphon_kernel.yjs.frames import SyncStep1, encode_frame
from tests.kernel.served import ServedKernel
from tests.waiting import PATIENCE

SENT = 48 * 2**20
HELD = 4 * 2**20
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
