"""A connection that is ended from the kernel's side passes nothing on any more."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from starlette.types import Message

from antiphon_kernel.doors import leash as leashes
from antiphon_kernel.doors.leash import Leash
from antiphon_kernel.kernel.access.sessions import Dismissal
from antiphon_kernel.wire.close_codes import CloseCode
from tests.waiting import until

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
        return self.sent.popleft()

    async def send(self, message: Message) -> None:
        await self._reading.wait()
        self.told.append(message)

    def send_now(self, message: bytes) -> bool:
        self.told.append({"type": "websocket.send", "bytes": message})
        return True

    def cut(self) -> None:
        self.was_cut = True

    @property
    def leash(self) -> Leash:
        return Leash(self.receive, self.send, self.cut, self.send_now)


def frame(text: str) -> Message:
    return {"type": "websocket.receive", "text": text}


GONE: Message = {"type": "websocket.disconnect", "code": 1000}


async def test_what_came_before_the_dismissal_is_passed_on_and_what_waits_is_not() -> None:
    client = Client(frame("before"), frame("waiting"), frame("waiting too"), GONE)
    leash = client.leash
    assert await leash.receive() == frame("before")
    leash.dismiss(KICKED)
    assert await leash.receive() == GONE
    await leash.let_go()


async def test_nothing_follows_a_goodbye_and_there_is_one() -> None:
    client = Client(GONE)
    leash = client.leash
    await leash.send({"type": "websocket.accept"})
    leash.dismiss(KICKED)
    leash.dismiss(Dismissal(CloseCode.REVOKED, "again"))
    await leash.send({"type": "websocket.send", "text": "late"})
    assert not leash.send_now(b"late")
    await leash.receive()
    await leash.let_go()
    goodbye = {"type": "websocket.close", "code": 4411, "reason": "amy kicked bo."}
    assert client.told == [{"type": "websocket.accept"}, goodbye]
    assert not client.was_cut


async def test_a_door_that_has_closed_is_not_closed_again() -> None:
    client = Client(GONE)
    leash = client.leash
    await leash.send({"type": "websocket.close", "code": 4404})
    leash.dismiss(KICKED)
    await leash.let_go()
    assert [message.get("code") for message in client.told] == [4404]


@pytest.mark.parametrize("reads", [True, False])
async def test_who_does_not_go_is_cut(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leashes, "GOODBYE_SECONDS", 0.01)
    client = Client(reads=reads)
    leash = client.leash
    leash.dismiss(KICKED)
    await until(lambda: client.was_cut, "the client is cut")
    await leash.let_go()
