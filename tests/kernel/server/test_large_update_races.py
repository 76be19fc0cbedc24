"""Large updates: each is there whole or not at all, and nobody else has to wait.

Set ANTIPHON_LONG for as many items as one update may have.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pycrdt
import pytest

from antiphon_kernel.client.replica import Replica
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.storage import JOURNAL_FILE
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.yjs.close_codes import CloseCode
from antiphon_kernel.yjs.frames import Ack, SyncStep2, SyncUpdate
from tests.kernel.served import RawClient, ServedKernel, served_kernel
from tests.kernel.validation.peers import BetweenParts, Offline, Share, share
from tests.processes import watched
from tests.waiting import until


class Returner:
    """Cyd comes back with a large update, over a connection that asks for acknowledgements."""

    def __init__(self, served: ServedKernel) -> None:
        self.served = served
        self.there = ""
        self.cyd: Actor
        self.client: RawClient
        self.offline: Offline
        self.update = b""
        self.before = b""

    async def begin(self, items: int = 1_000) -> None:
        served = self.served
        self.there = await served.block("there")
        context = await served.context()
        self.cyd = served.kernel.open_session(await served.kernel.principal("cyd"), "test")
        self.client = await self.connect()
        self.offline = Offline(context, self.cyd, 1)
        self.offline.write(self.there, items)
        self.offline.write(self.offline.draft(), 10)
        self.update = self.offline.update()
        self.before = context.document.state_vector()

    async def connect(self) -> RawClient:
        client = await self.served.raw(query="ack=1&as=cyd")
        await client.join()
        return client

    async def send(self) -> None:
        await self.client.send(SyncUpdate(self.update))

    async def between_parts(self, act: Callable[[], Awaitable[object]]) -> BetweenParts:
        """Act when a part of it, and not all, has been applied."""
        return BetweenParts(await self.served.context(), self.cyd, act)

    async def share(self) -> Share:
        return share(await self.served.context(), self.update, self.before)

    async def all_there(self) -> None:
        context = await self.served.context()
        await until(lambda: share(context, self.update, self.before) is Share.ALL)
        await context.in_flight.wait_applied(self.cyd)
        assert context.document.text(self.there) == self.text

    @property
    def text(self) -> str:
        return str(self.offline.blocks[self.there]["content"])


@pytest.fixture
async def returner(served: ServedKernel) -> Returner:
    returner = Returner(served)
    await returner.begin()
    return returner


@pytest.mark.sqlite
async def test_large_update_accepted_before_demotion_is_applied_whole(returner: Returner) -> None:
    served = returner.served

    async def demote() -> None:
        await served.kernel.access.change_role(
            returner.cyd.principal, AccessRole.VIEWER, served.me.principal
        )

    between = await returner.between_parts(demote)
    await returner.send()
    assert (await returner.client.closed())[0] == CloseCode.ROLE_CHANGED
    await returner.all_there()
    await between.happened()


async def test_large_update_not_accepted_before_demotion_is_dropped_whole(
    returner: Returner,
) -> None:
    served, context = returner.served, await returner.served.context()
    async with context.in_flight.turn(returner.cyd):
        await returner.send()
        await until(lambda: is_waiting("sync large update"), "it is here")
        await served.kernel.access.change_role(
            returner.cyd.principal, AccessRole.VIEWER, served.me.principal
        )
    assert (await returner.client.closed())[0] == CloseCode.ROLE_CHANGED
    await until(lambda: not is_waiting("sync large update"), "it is decided")
    assert await returner.share() is Share.NOTHING


async def test_connection_that_breaks_off_leaves_all_of_it(returner: Returner) -> None:
    async def cut() -> None:
        returner.client.socket.transport.abort()

    between = await returner.between_parts(cut)
    await returner.send()
    await returner.all_there()
    await between.happened()
    await until(lambda: returner.served.doors.connections.members == 0, "it is gone")


async def test_kernel_that_stops_takes_in_all_of_it(returner: Returner) -> None:
    stopping = asyncio.Event()

    async def stop() -> None:
        stopping.set()

    between = await returner.between_parts(stop)
    await returner.send()
    await stopping.wait()
    await returner.served.stop()
    await between.happened()
    await returner.served.start()
    await returner.all_there()


@pytest.mark.sqlite
async def test_large_update_on_failing_disk_is_not_acknowledged_and_sent_again(
    served: ServedKernel,
) -> None:
    returner = Returner(served)
    await returner.begin(5_000)  # so much that the disk is broken before the end
    between = await returner.between_parts(served.break_disk)
    await returner.send()
    assert (await returner.client.closed())[0] in (CloseCode.RESTART, CloseCode.INTERNAL_ERROR)
    await between.happened()
    assert not any(isinstance(frame, Ack) for frame in returner.client.received)
    await served.mend_disk()
    assert await returner.share() is not Share.ALL
    await send_what_is_missing(returner)
    await returner.all_there()


@pytest.mark.sqlite
async def test_kernel_that_dies_between_the_parts_has_acknowledged_nothing(
    returner: Returner, tmp_path: Path
) -> None:
    served = returner.served
    died = tmp_path / "died" / "data"

    async def copy() -> None:
        """Copy what is on disk now, which a kernel finds that starts after the end."""
        assert not any(isinstance(frame, Ack) for frame in returner.client.received)
        await asyncio.to_thread(copy_data, tmp_path / "data", died)

    between = await returner.between_parts(copy)
    await returner.send()
    await returner.client.next(Ack)
    await between.happened()
    await served.stop()
    served.move(died.parent)
    await served.start()
    assert await returner.share() is not Share.ALL
    await send_what_is_missing(returner)
    await returner.all_there()


async def send_what_is_missing(returner: Returner) -> None:
    """As a client does that comes back."""
    context = await returner.served.context()
    client = await returner.connect()
    rest = returner.offline.doc.get_update(context.document.state_vector())
    await client.send(SyncStep2(rest))
    await client.next(Ack)


def copy_data(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for name in (JOURNAL_FILE, "auth.db"):
        with (
            sqlite3.connect(source / name) as database,
            sqlite3.connect(target / name) as copied,
        ):
            database.backup(copied)


def is_waiting(name: str) -> bool:
    return any(task.get_name() == name for task in asyncio.all_tasks())


ITEMS = DEFAULT_LIMITS.update_structs - 1_000 if os.environ.get("ANTIPHON_LONG") else 6_000
STALL_SHARE = 0.34
"""How much of the work for the update the event loop may do at a stretch."""


def has_arrived(replica: Replica, block: str, text: str) -> bool:
    return replica.document.text(block) == text


async def test_keystrokes_stay_fast_while_large_update_is_applied(tmp_path: Path) -> None:
    async with served_kernel(tmp_path) as served:
        far, near = await served.block("x"), await served.block()
        ann, ben = await served.replica("ann"), await served.replica("ben")
        returner = await served.raw(query="ack=1&as=cyd")
        doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=77)
        doc.apply_update((await returner.join()).update)
        before = doc.get_state()
        content = doc.get("blocks", type=pycrdt.Map)[far]["content"]
        for _ in range(ITEMS // 100):
            with doc.transaction():
                for _ in range(100):
                    content.insert(0, "ab")
        update = doc.get_update(before)
        await returner.send(SyncUpdate(update))
        keys = ""
        taken = asyncio.create_task(returner.next(Ack))
        began, work_began = time.perf_counter(), time.process_time()
        async with watched() as stall:  # kernel and replicas are this process
            while not taken.done():
                ann.document.append(near, "k")
                keys += "k"
                await until(partial(has_arrived, ben, near, keys))
                await asyncio.sleep(0.005)
        seconds, work = time.perf_counter() - began, time.process_time() - work_began
        sys.stdout.write(
            f"\n{ITEMS} items, {len(update)} bytes, taken in after {seconds:.1f} s;"
            f" {len(keys)} keystrokes; at most {stall.seconds * 1e3:.0f} ms at a stretch\n"
        )
        document = (await served.context()).document
        await until(lambda: document.length(far) == 2 * (ITEMS // 100 * 100) + 1)
        assert len(keys) > 1, "the next one was typed when the first had arrived"
        assert stall.seconds < STALL_SHARE * work
