"""The kernel's end of a WebSocket: whatever door it came through, it can be ended at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon_kernel.doors.scope import CUT_EXTENSION, LEASH, SEND_EXTENSION
from antiphon_kernel.doors.sync.connection import short_reason
from antiphon_kernel.kernel.access.sessions import Dismissal

GOODBYE_SECONDS: Final = 2.0
"""How long a client has to read why it is dismissed."""


class Leash:
    """Passes messages on until the session is dismissed; after that nothing, either way."""

    def __init__(
        self,
        receive: Receive,
        send: Send,
        cut: Callable[[], None],
        send_now: Callable[[bytes], bool],
    ) -> None:
        self._receive = receive
        self._send = send
        self._cut = cut
        self._send_now = send_now
        self._dismissed = False
        self._gone = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        """The client's next message; none that comes after the dismissal."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._gone.set()
                return message
            if not self._dismissed:
                return message

    async def send(self, message: Message) -> None:
        """Pass on what a door says; nothing follows a goodbye."""
        if self._dismissed:
            return
        if message["type"] == "websocket.close":
            self._gone.set()
        await self._send(message)

    def send_now(self, message: bytes) -> bool:
        """Send a whole message as it goes over the connection; False if it would have to wait."""
        return not self._dismissed and self._send_now(message)

    def dismiss(self, dismissal: Dismissal) -> None:
        """End the connection, saying why."""
        if self._dismissed or self._gone.is_set():
            return
        self._dismissed = True
        self._closing = asyncio.create_task(self._close(dismissal), name="dismissal")

    async def _close(self, dismissal: Dismissal) -> None:
        goodbye = {
            "type": "websocket.close",
            "code": int(dismissal.code),
            "reason": short_reason(dismissal.reason),
        }
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._send(goodbye)
                await self._gone.wait()
        except (TimeoutError, OSError):
            self._cut()

    async def let_go(self) -> None:
        """The door is done with the connection."""
        self._gone.set()
        if self._closing is not None:
            await self._closing


def on_leashes(application: ASGIApp) -> ASGIApp:
    """`application` with a `Leash` in the scope of each WebSocket."""

    async def leashed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await application(scope, receive, send)
            return
        extensions = scope.get("extensions") or {}
        cut = extensions.get(CUT_EXTENSION, {}).get("cut", _nothing)
        send_now = extensions.get(SEND_EXTENSION, {}).get("send_now", _not_now)
        leash = scope[LEASH] = Leash(receive, send, cut, send_now)
        try:
            await application(scope, leash.receive, leash.send)
        finally:
            await leash.let_go()

    return leashed


def _nothing() -> None:
    """A server without the extension closes when it likes."""


def _not_now(_: bytes) -> bool:
    """A server without the extension is handed every message in its turn."""
    return False
