"""A connection that is ended from the kernel's side passes nothing on any more."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from antiphon_kernel.server import connection_guard as leashes
from antiphon_kernel.server.connection_guard import ConnectionGuard, HttpGuard
from antiphon_kernel.server.connections import TrackedProtocol
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.yjs.close_codes import CloseCode

KICKED = Dismissal(CloseCode.KICKED, "amy kicked bo.")


class Client:
    """The far end: what it has sent, what it has been told, and whether it reads."""

    def __init__(self, *sent: Message, reads: bool = True) -> None:
        self.sent = deque(sent)
        self.told: list[Message] = []
        self.was_cut = False
        self._reading = asyncio.Event()
        if reads:
            self._reading.set()

    async def receive(self) -> Message:
        if not self.sent:
            await asyncio.Event().wait()
        return self.sent.popleft()

    async def send(self, message: Message) -> None:
        await self._reading.wait()
        self.told.append(message)

    def send_now(self, message: bytes) -> bool:
        self.told.append({"type": "websocket.send", "bytes": message})
        return True

    def cut(self) -> None:
        self.was_cut = True

    def websocket(self) -> ConnectionGuard:
        return ConnectionGuard(self.receive, self.send, cast(TrackedProtocol, self))

    def request(self) -> HttpGuard:
        return HttpGuard(self.receive, self.send, cast(TrackedProtocol, self))


class Door:
    """An application that notes what it receives, and that it was let go."""

    def __init__(self, *says: Message) -> None:
        self.says = says
        self.received: list[Message] = []
        self.is_over = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            for message in self.says:
                await send(message)
            while True:
                self.received.append(await receive())
        finally:
            self.is_over = True


def frame(text: str) -> Message:
    return {"type": "websocket.receive", "text": text}


async def serving(guard: ConnectionGuard, door: Door, times: int = 5) -> asyncio.Task[None]:
    """Serve a connection, as far as it goes without being waited for."""
    task = asyncio.create_task(guard.serve(door, {}))
    for _ in range(times):
        await asyncio.sleep(0)
    return task


async def test_leash_dismissal_ends_the_door_and_nothing_more_is_taken() -> None:
    client = Client(frame("before"))
    guard, door = client.websocket(), Door()
    task = await serving(guard, door)
    client.sent.append(frame("waiting"))
    guard.dismiss(KICKED)
    await task
    assert door.received == [frame("before")] and door.is_over
    assert client.told == [{"type": "websocket.close", "code": 4411, "reason": "amy kicked bo."}]
    assert await guard.receive() == {"type": "websocket.disconnect", "code": 1005}


async def test_leash_after_a_goodbye_sends_nothing_and_has_one_only() -> None:
    client = Client()
    guard = client.websocket()
    task = await serving(guard, Door({"type": "websocket.accept"}))
    guard.dismiss(KICKED)
    guard.dismiss(Dismissal(CloseCode.REVOKED, "again"))
    await guard.send({"type": "websocket.send", "text": "late"})
    assert not guard.send_now(b"late")
    await task
    assert [message.get("code") for message in client.told] == [None, 4411]
    assert not client.was_cut


async def test_leash_of_a_door_that_has_closed_is_not_closed_again() -> None:
    client = Client()
    guard = client.websocket()
    task = await serving(guard, Door({"type": "websocket.close", "code": 4404}))
    guard.dismiss(KICKED)
    assert [message.get("code") for message in client.told] == [4404]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_leash_of_somebody_who_dismisses_themselves_ends_behind_what_they_did() -> None:
    client = Client()
    guard = client.websocket()

    async def leave(scope: Scope, receive: Receive, send: Send) -> None:
        guard.dismiss(KICKED)

    await guard.serve(leave, {})
    await asyncio.sleep(0)
    assert [message.get("code") for message in client.told] == [4411]


@pytest.mark.parametrize("kind", ["websocket", "request"])
async def test_leash_cuts_a_client_that_does_not_read_its_goodbye(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leashes, "GOODBYE_SECONDS", 0.01)
    client = Client(reads=False)
    guard: ConnectionGuard = getattr(client, kind)()
    task = await serving(guard, Door())
    guard.dismiss(KICKED)
    await task
    assert client.was_cut
