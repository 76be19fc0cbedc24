"""The kernel's end of a connection: however it came, it can be ended at once."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon_kernel.server.connections import GUARD, TrackedProtocol
from antiphon_kernel.server.sync.connection import short_reason
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.types.errors import permission_denied

LINES: Final = "application/x-ndjson"
"""Media type of an answer that goes on line by line."""

GOODBYE_SECONDS: Final = 2.0
"""How long a client has to read why it is dismissed."""


class ConnectionGuard:
    """Passes messages of a WebSocket on until the session is dismissed; after that nothing, either
    way: its goodbye is a close frame.

    A dismissal cancels the task that serves the connection, whatever it waits for: the next
    message, the rest of a body, the end of a call, a slow reader.
    """

    def __init__(self, receive: Receive, send: Send, connection: TrackedProtocol) -> None:
        self._receive = receive
        self._send = send
        self._connection = connection
        self._serving: asyncio.Task[None] | None = None
        self._dismissed = False
        self._over = False
        """Whether the application has said its last word."""
        self._closing: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        """Return the client's next message; after a dismissal only that it has gone."""
        message = await self._receive()
        return self._gone() if self._dismissed else message

    async def send(self, message: Message) -> None:
        """Pass on what the application says; nothing follows a goodbye."""
        if not self._dismissed:
            await self._send(message)
            self._sent(message)

    def send_now(self, message: bytes) -> bool:
        """Send a whole WebSocket message; False if it would have to wait, or cannot be sent."""
        return not self._dismissed and self._connection.send_now(message)

    def dismiss(self, dismissal: Dismissal) -> None:
        """End the connection, saying why."""
        if self._dismissed or self._over:
            return
        self._dismissed = True
        self._closing = asyncio.create_task(self._close(dismissal), name="dismissal")
        if self._serving is not None:
            self._serving.cancel()

    async def serve(self, application: ASGIApp, scope: Scope) -> None:
        """Run `application` until it is done or its session is dismissed."""
        self._serving = task = asyncio.current_task()
        assert task is not None
        scope[GUARD] = self
        try:
            await application(scope, self.receive, self.send)
        except asyncio.CancelledError:
            if not self._dismissed or task.cancelling() > 1:
                raise
        finally:
            self._over, self._serving = True, None
            if self._closing is not None:
                if task.cancelling():
                    task.uncancel()
                    with suppress(asyncio.CancelledError):  # it may have ended before it was told
                        await asyncio.sleep(0)
                await self._closing
            del scope[GUARD]  # or both would wait for the garbage collector

    async def _close(self, dismissal: Dismissal) -> None:
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._say_goodbye(dismissal)
        except (TimeoutError, OSError):
            self._connection.cut()

    async def _say_goodbye(self, dismissal: Dismissal) -> None:
        code, reason = int(dismissal.code), short_reason(dismissal.reason)
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    def _gone(self) -> Message:
        """Return the message that says that the client has gone."""
        return {"type": "websocket.disconnect", "code": 1005}

    def _sent(self, message: Message) -> None:
        """Record what the application has said."""
        self._over = self._over or message["type"] == "websocket.close"


class HttpGuard(ConnectionGuard):
    """The same of a request: its goodbye is an answer of status 403, or the last line of one that
    goes on.

    Both are `{"type": "error", "error": …}` with the reason and, as `close_code`, the code of the
    dismissal. Another answer that has begun is cut off, so that nobody takes it for a whole one.
    """

    _started = False
    _has_lines = False
    _in_line = False

    async def _say_goodbye(self, dismissal: Dismissal) -> None:
        code = int(dismissal.code)
        error = permission_denied(dismissal.reason, close_code=code)
        line = json.dumps({"type": "error", "error": error.as_json()}).encode() + b"\n"
        if self._started and not self._has_lines:
            self._connection.cut()
            return
        if not self._started:
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(line)).encode()),
                (b"connection", b"close"),
            ]
            await self._send({"type": "http.response.start", "status": 403, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"\n" * self._in_line + line})

    def _gone(self) -> Message:
        return {"type": "http.disconnect"}

    def _sent(self, message: Message) -> None:
        self._started = True
        if message["type"] == "http.response.start":
            self._has_lines = (b"content-type", LINES.encode()) in message["headers"]
        elif body := message.get("body"):
            self._in_line = not body.endswith(b"\n")
        ends = message["type"] == "http.response.body" and not message.get("more_body", False)
        self._over = self._over or ends
