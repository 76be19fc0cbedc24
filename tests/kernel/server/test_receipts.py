"""Counting the updates of a connection as they reach the disk."""

from __future__ import annotations

import asyncio

import pytest

from antiphon_kernel.server.sync.ack_tracker import AckTracker
from tests.waiting import PATIENCE


class Ledger:
    """Receipts whose futures the test completes."""

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.receipts = AckTracker(lambda: self.changes.append(self.receipts.on_disk))

    def applied(self, *, complete: bool = False) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.receipts.applied(future, complete=complete)
        return future


async def test_frames_count_in_order() -> None:
    ledger = Ledger()
    first, second, third = [ledger.applied() for _ in range(3)]
    second.set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 0
    first.set_result(None)
    third.set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 3
    await asyncio.wait_for(ledger.receipts.fewer_than(1), PATIENCE)


async def test_ack_tracker_counts_nothing_behind_gap_until_it_is_filled() -> None:
    ledger = Ledger()
    ledger.applied().set_result(None)
    ledger.receipts.gap()
    ledger.applied().set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 1
    ledger.applied(complete=True).set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 4


async def test_failure_stops_the_count() -> None:
    ledger = Ledger()
    first, second = ledger.applied(), ledger.applied()
    first.set_exception(OSError("disk full"))
    second.set_result(None)
    await asyncio.sleep(0)
    assert ledger.receipts.on_disk == 0
    assert isinstance(ledger.receipts.failure, OSError)


async def test_ack_tracker_waits_while_too_many_are_pending() -> None:
    ledger = Ledger()
    futures = [ledger.applied() for _ in range(3)]
    waiting = asyncio.create_task(ledger.receipts.fewer_than(3))
    await asyncio.sleep(0)
    assert not waiting.done()
    futures[0].set_result(None)
    await asyncio.wait_for(waiting, PATIENCE)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ledger.receipts.fewer_than(2), 0.01)
