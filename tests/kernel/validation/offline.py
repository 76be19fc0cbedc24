"""Somebody who was offline for long, and whether what they wrote then has come in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import Enum
from typing import Any

from pycrdt import Doc, Map, Text

from antiphon_kernel.access import WriteGuard
from antiphon_kernel.contexts import Applied, Context, apply_large_update
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.state_vector import decode_state_vector
from antiphon_kernel.yjs.update import decode_update

ALPHABET = ("a", "漢", "😀", "line\n", "ßx")


class Offline:
    """Somebody who wrote for hours without a connection."""

    def __init__(self, context: Context, actor: Actor, seed: int, client_id: int = 4711) -> None:
        self.doc: Doc[Any] = Doc(client_id=client_id)
        self.doc.apply_update(context.document.update_since())
        self._before = self.doc.get_state()
        self._context = context
        self.actor = actor
        self._rng = random.Random(seed)
        self.drafts: list[str] = []
        self.submitted: list[str] = []

    @property
    def blocks(self) -> Map[Any]:
        return self.doc.get("blocks", type=Map)

    def write(self, block: str, steps: int) -> None:
        """Insert and delete at random places; each place is an item of its own."""
        rng, content = self._rng, self.blocks[block]["content"]
        text = str(content)
        with self.doc.transaction():
            for _ in range(steps):
                at = rng.randint(0, len(text))
                offset = len(text[:at].encode())
                if rng.random() < 0.2 and at < len(text):
                    del content[offset : offset + len(text[at].encode())]
                    text = text[:at] + text[at + 1 :]
                else:
                    new = rng.choice(ALPHABET)
                    content.insert(offset, new)
                    text = text[:at] + new + text[at:]

    def draft(self, number: int | None = None) -> str:
        number = DRAFT_SEQ_MIN + len(self.drafts) if number is None else number
        block = f"{self._context.id}.{self.actor.principal.id}.{number}"
        fields = {"kind": "text", "role": "user", "status": "pending", "order": "a5"}
        fields |= {"language": "en", "path": "a/b"}
        with self.doc.transaction():
            self.blocks[block] = Map({**fields, "content": Text("begun ")})
            del self.blocks[block]["path"]
            self.blocks[block]["language"] = "de"
        self.drafts.append(block)
        return block

    def go_on_as(self, client_id: int) -> None:
        """The program is started again: it goes on with another client id."""
        again: Doc[Any] = Doc(client_id=client_id)
        again.apply_update(self.doc.get_update())
        self.doc = again

    def submit(self, block: str) -> None:
        self.blocks[block]["status"] = "done"
        self.submitted.append(block)

    def update(self) -> bytes:
        return self.doc.get_update(self._before)


class Share(Enum):
    """How much of an update a context has."""

    NOTHING = "nothing"
    HALF = "half"
    ALL = "all"


def share(context: Context, update: bytes, before: bytes) -> Share:
    """How much of the items of an update is there, which were not in the state `before`."""
    first, there = decode_state_vector(before), decode_state_vector(context.document.state_vector())
    ends: dict[int, int] = {}
    for one in decode_update(update).structs:
        ends[one.client] = max(ends.get(one.client, 0), one.clock + one.length)
    new = {client: end for client, end in ends.items() if end > first.get(client, 0)}
    assert new
    if all(there.get(client, 0) >= end for client, end in new.items()):
        return Share.ALL
    if all(there.get(client, 0) <= first.get(client, 0) for client in new):
        return Share.NOTHING
    return Share.HALF


def nothing() -> None:
    """Nobody does anything."""


async def take_in(
    context: Context, actor: Actor, update: bytes, meanwhile: Callable[[], None] = nothing
) -> int:
    """Hand in an update that may be large; `meanwhile` happens when it has been checked.

    Returns the context's version when all of it is on disk.
    """
    one = replace(actor)  # the guard knows by it which update is being accepted
    guard = context.guard
    if not isinstance(guard, _AcceptanceGuard):
        guard = context.guard = _AcceptanceGuard(guard)
    guard.meanwhile[id(one)] = meanwhile
    try:
        await (await apply_large_update(context, one, update, "client"))
        return context.seq
    finally:
        del guard.meanwhile[id(one)]


class _AcceptanceGuard(WriteGuard):
    """The guard of a context, which lets something happen before it checks a session."""

    def __init__(self, found: WriteGuard) -> None:
        self.__dict__.update(vars(found))
        self.meanwhile: dict[int, Callable[[], None]] = {}

    def check_session(self, actor: Actor) -> None:
        self.meanwhile.get(id(actor), nothing)()
        super().check_session(actor)


class BetweenParts:
    """Lets something happen when the first part of the next update of somebody has been applied."""

    def __init__(
        self, context: Context, actor: Actor, act: Callable[[], Awaitable[object]]
    ) -> None:
        self._context = context
        self._actor = actor
        self._act = act
        self._task: asyncio.Task[None] | None = None
        self._seqs: list[int] = []
        self._at = 0
        self._stop = context.applied.listen(self._applied)

    def _applied(self, applied: Applied) -> None:
        if applied.actor.principal == self._actor.principal and applied.operation == "sync":
            self._seqs.append(applied.seq)
            if self._task is None:
                self._task = asyncio.create_task(self._now())

    async def _now(self) -> None:
        self._at = self._context.seq
        await self._act()

    async def happened(self) -> None:
        """Wait until it is over; fails unless there was more of the update to come."""
        self._stop()
        assert self._task is not None
        await self._task
        assert self._seqs[-1] > self._at
