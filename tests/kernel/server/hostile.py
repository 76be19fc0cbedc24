"""Clients that mean no good: each attack is a loop that goes on until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import random
import socket as sockets
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pycrdt
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from antiphon_kernel.document.document import Document
from antiphon_kernel.yjs.frames import (
    AwarenessEntry,
    AwarenessUpdate,
    Frame,
    PermissionDenied,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    encode_awareness,
    encode_frame,
)
from antiphon_kernel.yjs.primitives import write_var_uint
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.served import RawClient
from tests.waiting import PATIENCE, until

IS_LONG = "ANTIPHON_LONG" in os.environ
ROUNDS = 10**9 if IS_LONG else 3
"""After how many rounds an attack waits between two: all are tried until each refusal is met."""

Attack = Callable[["Hostile"], Awaitable[None]]


@dataclass(frozen=True)
class Target:
    """Kernel and context that the attacks are aimed at."""

    port: int
    token: str
    kernel_client: int
    """CRDT client id that the kernel writes with."""
    viewer: str
    """Principal id of the one who may only read."""
    block: str
    frozen: str
    """A block with a map `state` of a read-only text `fixed` and a number `free`, a text `sealed`
    that is read-only, a log with an entry and a list `few`."""


@dataclass
class Hostile:
    """Somebody with a name, a target and no manners."""

    target: Target
    name: str
    rng: random.Random
    done: asyncio.Event
    told: list[str] = field(default_factory=list)
    """Messages of the kernel when it refused."""
    rounds: int = 0

    async def until_done(self, attack: Attack) -> None:
        while not self.done.is_set():
            with contextlib.suppress(ConnectionClosed, OSError, TimeoutError, InvalidHandshake):
                await attack(self)
            self.rounds += 1
            await asyncio.sleep(0 if self.rounds < ROUNDS else 0.2)

    @contextlib.asynccontextmanager
    async def connection(self, **options: Any) -> Any:
        target = self.target
        uri = f"ws://127.0.0.1:{target.port}/sync/default?token={target.token}&as={self.name}"
        options = {"compression": None, "max_size": None, "close_timeout": 0.2, **options}
        async with connect(uri, **options) as socket:
            yield RawClient(socket)

    async def document(self, client: RawClient, client_id: int | None = None) -> Document:
        document = Document(client_id or self.rng.randrange(1, 2**53))
        document.apply_update((await client.join()).update)
        return document

    async def refused(self, client: RawClient, update: bytes) -> None:
        """Send an update that must not be taken, and hear what the kernel says."""
        await client.send(SyncUpdate(update))
        denied = await client.next(PermissionDenied)
        self.told.append(denied.reason.partition(":")[0])
        await client.closed()

    async def hung_up(self, *frames: Frame | bytes) -> None:
        """Join, send what cannot be taken, and be hung up on."""
        async with self.connection() as client:
            await client.join()
            await client.send(*frames)
            await client.closed()


@contextlib.contextmanager
def update_of(document: Document) -> Iterator[list[bytes]]:
    updates: list[bytes] = []
    unwatch = document.watch_updates(lambda update, _: updates.append(update))
    yield updates
    unwatch()


def stock(document: Document, client_id: int) -> pycrdt.Doc[Any]:
    """The same document without any of our manners."""
    doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=client_id)
    doc.apply_update(document.update_since())
    return doc


def forging(edit: Callable[[Hostile, pycrdt.Doc[Any]], None]) -> Attack:
    """Make an attack of an edit that must not be taken."""

    @functools.wraps(edit)
    async def attack(me: Hostile) -> None:
        async with me.connection() as client:
            document = await me.document(client)
            copy = stock(document, document.client_id)
            before = copy.get_state()
            edit(me, copy)
            await me.refused(client, copy.get_update(before))

    return attack


async def random_bytes(me: Hostile) -> None:
    kinds = (b"", b"\x00\x02", b"\x00\x01", b"\x00\x00", b"\x01", b"\x03")
    sizes = [me.rng.randrange(200) for _ in range(20)]
    await me.hung_up(*(me.rng.choice(kinds) + me.rng.randbytes(size) for size in sizes))


async def broken_updates(me: Hostile) -> None:
    """Cut short and with flipped bits: what is left of a change of somebody's header."""
    async with me.connection() as client:
        document = await me.document(client)
        with update_of(document) as updates:
            document.set_fields(me.target.block, status="error")
        update = bytearray(updates[0])
        if me.rng.random() < 0.5:
            del update[me.rng.randrange(len(update)) :]
        else:
            update[me.rng.randrange(len(update))] ^= 1 << me.rng.randrange(8)
        await client.send(SyncUpdate(bytes(update)), SyncStep2(b"\x00\x00"), SyncUpdate(b"\x01"))
        await client.closed()


async def bombs(me: Hostile) -> None:
    for update in (write_var_uint(2**28), b"\x01" + write_var_uint(2**28), b"\x00\x01\x01\xff"):
        await me.hung_up(SyncUpdate(update))


async def anothers_client_id(me: Hostile) -> None:
    async with me.connection() as client:
        document = await me.document(client)
        copy = stock(document, me.target.kernel_client)
        before = copy.get_state()
        copy.get("blocks", type=pycrdt.Map)[me.target.block]["content"].insert(0, "stolen ")
        await me.refused(client, copy.get_update(before))


@forging
def others_headers(me: Hostile, copy: pycrdt.Doc[Any]) -> None:
    blocks = copy.get("blocks", type=pycrdt.Map)
    match me.rng.randrange(5):
        case 0:
            blocks[me.target.block]["status"] = "error"
        case 1:
            del blocks[me.target.block]["content"]
        case 2:
            del blocks[me.target.block]
        case 3:
            copy.get("meta", type=pycrdt.Map)["epoch"] = "0" * 32
        case _:
            context = copy.get("meta", type=pycrdt.Map)["context"]
            blocks[f"{context}.{'0' * 32}.7"] = pycrdt.Map({"content": pycrdt.Text()})


@forging
def read_only_parts(me: Hostile, copy: pycrdt.Doc[Any]) -> None:
    content = copy.get("blocks", type=pycrdt.Map)[me.target.frozen]["content"]
    sealed = content["state"]["fixed"] if me.rng.random() < 0.5 else content["sealed"]
    sealed.insert(0, "opened ")


@forging
def structured_parts(me: Hostile, copy: pycrdt.Doc[Any]) -> None:
    """Write what only tools write: lists, logs and fields."""
    content = copy.get("blocks", type=pycrdt.Map)[me.target.frozen]["content"]
    match me.rng.randrange(5):
        case 0:
            content["log"].insert(0, "forged")
        case 1:
            del content["log"][0]
        case 2:
            content["few"].append(1.0)
        case 3:
            content["few"] = pycrdt.Array()
        case _:
            content["state"]["free"] = 1.0


@forging
def large_and_wrong(me: Hostile, copy: pycrdt.Doc[Any]) -> None:
    """Hundreds of edits that are all allowed, and a last one that is not."""
    block = copy.get("blocks", type=pycrdt.Map)[me.target.block]
    with copy.transaction():
        for _ in range(600):
            block["content"].insert(0, "x")
            block["content"].insert(0, "yz")
        block["role"] = "model"


async def torn_characters(me: Hostile) -> None:
    """An update that a JavaScript client makes by cutting an emoji in two."""
    async with me.connection() as client:
        document = await me.document(client)
        for one in decode_update(document.update_since()).structs:
            text = one.content
            if one.kind is ContentKind.STRING and isinstance(text, str) and "😀" in text:
                at = len(text[: text.index("😀")].encode("utf-16-le")) // 2
                half = ItemId(one.client, one.clock + at)
                item = Struct(document.client_id, 0, 1, ContentKind.STRING, half, content="x")
                await me.refused(client, encode_update([item], ()))
                return


async def over_the_limit(me: Hostile) -> None:
    await me.hung_up(b"\x00" * (2**21))


async def bad_presence(me: Hostile) -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    for state in ({"deep": deep}, {"long": "x" * 60_000}):
        await me.hung_up(AwarenessUpdate(encode_awareness([AwarenessEntry(7, 1, state)])))


async def never_reads(me: Hostile) -> None:
    """Asks for everything again and again, and reads nothing of it."""
    sock = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 8192)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", me.target.port))
    async with me.connection(sock=sock, max_queue=1, ping_interval=None) as client:
        while not me.done.is_set():
            ask = encode_frame(SyncStep1(b"\x00"))
            await asyncio.wait_for(client.socket.send(ask), 5)
            await asyncio.wait_for(client.socket.send(encode_frame(QueryAwareness())), 5)
            await asyncio.sleep(0.001)


async def never_stops(me: Hostile) -> None:
    """Frames that are all allowed: in a long run as fast as the line takes them."""
    pause = 0 if IS_LONG else 0.02
    async with me.connection() as client:
        await client.join()
        frame = encode_frame(SyncUpdate(b"\x00\x00"))
        while not me.done.is_set():
            for _ in range(50):
                await client.socket.send(frame)
            await asyncio.sleep(pause)


async def come_and_go(me: Hostile) -> None:
    """Twenty connections at a time, each dropped without a word."""

    async def once() -> None:
        async with me.connection() as client:
            if me.rng.random() < 0.5:
                await client.send(SyncStep1(b"\x00"))
            client.socket.transport.abort()

    await asyncio.gather(*(once() for _ in range(20)), return_exceptions=True)


async def write_as_viewer(me: Hostile) -> None:
    async with me.connection() as client:
        document = await me.document(client)
        with update_of(document) as updates:
            if me.rng.random() < 0.5:
                document.splice(me.target.block, 0, 1, "viewed ")
            else:
                key = f"{document.context}.{me.target.viewer}.{2**32 + me.rng.randrange(2**40)}"
                header = document.header(me.target.block)._replace(id=key, status="pending")
                document.create_block(header, "a viewer's draft")
        await me.refused(client, updates[0])


AS_EDITOR: tuple[Attack, ...] = (
    random_bytes,
    broken_updates,
    bombs,
    anothers_client_id,
    others_headers,
    read_only_parts,
    large_and_wrong,
    structured_parts,
    torn_characters,
    over_the_limit,
    bad_presence,
    never_reads,
    never_stops,
    come_and_go,
)


LASTING: tuple[Attack, ...] = (never_reads, never_stops)
"""One round of these takes as long as everything."""

REFUSALS = frozenset(
    {
        "permission_denied",
        "read_only_field",
        "read_only_section",
        "invalid_params",
    }
)


async def attack_all(target: Target, seconds: float) -> dict[str, Any]:
    """Everything at once; how often each was tried, and what the kernel said.

    Goes on for `seconds`, and until each has been tried and each refusal been met.
    """
    rng = random.Random(20_260_101)
    done = asyncio.Event()
    hostiles = [
        (Hostile(target, "eve", random.Random(rng.random()), done), one) for one in AS_EDITOR
    ]
    vera = Hostile(target, "vera", random.Random(rng.random()), done)
    hostiles.append((vera, write_as_viewer))
    attacks = [asyncio.create_task(one.until_done(attack)) for one, attack in hostiles]
    await asyncio.sleep(seconds)
    brief = [one for one, attack in hostiles if attack not in LASTING]

    def all_was_met() -> bool:
        told = {code for one, _ in hostiles for code in one.told}
        return all(one.rounds for one in brief) and told >= REFUSALS

    await until(all_was_met, "each attack has been tried")
    done.set()
    await asyncio.wait_for(asyncio.gather(*attacks), PATIENCE)
    return {
        "rounds": {attack.__name__: one.rounds for one, attack in hostiles},
        "told": sorted({code for one, _ in hostiles for code in one.told}),
    }


def main() -> None:
    """Attack for some seconds: python -m tests.kernel.server.hostile TARGET SECONDS"""
    target, seconds = sys.argv[1:]
    report = asyncio.run(attack_all(Target(**json.loads(target)), float(seconds)))
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
