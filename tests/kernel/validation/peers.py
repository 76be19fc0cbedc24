"""Yjs clients that know nothing of our rules, and a schema with every kind of part.

One of them was offline for long; whether what was written then has come in.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.access import WriteGuard
from antiphon_kernel.contexts import Applied, Context, apply_large_update, apply_update
from antiphon_kernel.document.content import read_content
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.id_set import decode_state_vector
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update

ITEM = {
    "type": "map",
    "fields": [
        {"name": "n", "field_type": "number", "required": True},
        {"name": "words", "field_type": "text"},
    ],
}
FIELDS: list[dict[str, Any]] = [
    {"name": "fixed", "field_type": "number", "read_only": True, "default": 1},
    {"name": "must", "field_type": "number", "required": True, "default": 2},
    {"name": "flag", "field_type": "boolean"},
    {"name": "due", "field_type": "timestamp"},
    {"name": "title", "field_type": "text"},
    {"name": "stamp", "field_type": "text", "read_only": True},
    {"name": "few", "field_type": "list", "max_items": 3, "item_schema": {"type": "number"}},
    {"name": "count", "field_type": "counter"},
    # Its name is that of a client, so that its sum could be taken for the field.
    {"name": "77", "field_type": "counter"},
]
SCHEMA = {
    "type": "composite",
    "sections": [
        {"name": "state", "schema": {"type": "map", "fields": FIELDS}},
        {"name": "sealed", "schema": {"type": "text"}, "read_only": True},
        {"name": "notes", "schema": {"type": "text"}},
        {"name": "log", "schema": {"type": "log"}},
        {"name": "things", "schema": {"type": "list", "max_items": 4, "item_schema": ITEM}},
    ],
}


class Peer:
    """A client with a document of its own."""

    def __init__(self, context: Context, client_id: int = 77, *, keeps: bool = False) -> None:
        """`keeps`: whether it remembers what was deleted."""
        self.context = context
        self.doc: Doc[Any] = Doc(client_id=client_id, skip_gc=keeps)
        self.hear()

    def hear(self) -> None:
        self.doc.apply_update(self.context.document.update_since())

    @property
    def blocks(self) -> Map[Any]:
        return self.doc.get("blocks", type=Map)

    def content(self, block: str) -> Any:
        return self.blocks[block]["content"]

    def text(self, block: str, path: str) -> Text:
        content = self.content(block)
        for name in path.split("/"):
            content = content[name]
        assert isinstance(content, Text)
        return content

    def draft(self, actor: Actor, text: str = "", number: int = 0, **fields: str) -> str:
        block = f"{self.context.id}.{actor.principal.id}.{DRAFT_SEQ_MIN + number}"
        usual = {"kind": "text", "role": "user", "status": "pending", "order": "a5"}
        with self.doc.transaction():
            self.blocks[block] = Map({**usual, **fields, "content": Text(text)})
        return block

    def update(self) -> bytes:
        """Return what the kernel lacks, as the protocol sends it."""
        return self.doc.get_update(self.context.document.state_vector())

    async def send(self, actor: Actor) -> None:
        await apply_update(self.context, actor, self.update(), self)


class Layout:
    """Parts of a block, so that updates can be made up that no client would write."""

    def __init__(self, context: Context, block: str) -> None:
        self.containers: dict[str, ItemId] = {}
        """The shared types of the block by their path; the content itself is ""."""
        self.items: dict[str, list[ItemId]] = {}
        """Items written into each, gone or not, in the order of client and clock."""
        structs = decode_update(context.document.update_since()).structs
        made = {ItemId(one.client, one.clock): one for one in structs}
        item_index = context.structure.item_index
        for item, one in made.items():
            container = item_index.place(item).container
            if container.block == block and container.path is not None:
                ids = [ItemId(one.client, one.clock + at) for at in range(one.length)]
                self.items.setdefault("/".join(container.path), []).extend(ids)
            if one.kind is ContentKind.TYPE:
                names = _names(one, made)
                if names[:2] == [block, "content"]:
                    self.containers["/".join(names[2:])] = item


def _names(item: Struct, made: dict[ItemId, Struct]) -> list[str]:
    names = [str(item.key)]
    at = item
    while isinstance(at.parent, ItemId):
        at = made[at.parent]
        names.insert(0, str(at.key))
    return names


def value(context: Context, block: str, path: str) -> Any:
    return read_content(context.document, block, path).value


async def refused(
    context: Context, actor: Actor, update: bytes, code: ErrorCode | None = None
) -> AntiphonError:
    """Hand in an update that must change nothing; return the error, which has this code."""
    before = context.document.update_since()
    with pytest.raises(AntiphonError) as caught:
        await apply_update(context, actor, update, "client")
    assert context.document.update_since() == before
    assert caught.value.code is (code or caught.value.code)
    return caught.value


def changed(
    context: Context, block: str, change: Callable[[Any], None], client_id: int = 77
) -> bytes:
    """The update of a client that knows everything."""
    peer = Peer(context, client_id)
    with peer.doc.transaction():
        change(peer.content(block))
    return peer.update()


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
