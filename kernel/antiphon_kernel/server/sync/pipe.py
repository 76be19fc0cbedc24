"""A client in a context of another kernel: what both say is passed on, unread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from starlette.types import Receive, Send
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from antiphon_kernel.server.connections import CONNECTION, GUARD
from antiphon_kernel.server.sync.send_queue import whole_message
from antiphon_kernel.server.websocket import WebSocketProtocol
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode

_NO_CODES: Final = (None, 1005, 1006)
"""Close codes of connections that were not closed with one."""

_MOVED: Final = "Another kernel has the context from now on: come again."


async def pipe(
    upstream: ClientConnection, scope: Mapping[str, Any], receive: Receive, send: Send
) -> None:
    """Pass on what a client and another kernel say to each other, until one of them ends it.

    Neither is read faster than the other takes what has come.
    """
    has_left, send_now = False, scope[GUARD].send_now
    line: WebSocketProtocol = scope[CONNECTION]

    def pass_up_now(messages: Sequence[bytes]) -> int:
        """Pass messages on as they come, for less than a task takes, unless they have to wait."""
        if upstream.transport.get_write_buffer_size() or upstream.state is not State.OPEN:
            return 0
        for message in messages:
            upstream.protocol.send_binary(message)
        upstream.transport.write(b"".join(upstream.protocol.data_to_send()))
        return len(messages)

    async def pass_up() -> None:
        nonlocal has_left
        with suppress(ConnectionClosed):
            while (message := await receive())["type"] == "websocket.receive":
                data = message.get("bytes")
                await upstream.send(data if data is not None else message["text"])
            has_left = True
            await upstream.close()

    up = asyncio.create_task(pass_up(), name="forwarding to another kernel")
    line.deliver = pass_up_now
    try:
        with suppress(ConnectionClosed):
            async for data in upstream:
                if not send_now(whole_message(data)):
                    kind = "text" if isinstance(data, str) else "bytes"
                    await send({"type": "websocket.send", kind: data})
        if not has_left:
            code, reason = upstream.close_code, upstream.close_reason
            if code in _NO_CODES or reason == SHUTTING_DOWN:
                code, reason = CloseCode.MOVED, _MOVED
            await send({"type": "websocket.close", "code": code, "reason": reason})
    except OSError:
        pass  # the client is gone
    finally:
        line.deliver = None
        up.cancel()
        await asyncio.wait({up})
        await upstream.close()
