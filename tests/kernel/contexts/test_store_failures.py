"""The ways in which pycrdt-store's SQLiteYStore was seen to lose data, tried on the journal.

| event | what it did there | test |
|---|---|---|
| a squash | 200 characters became none | `test_squash_empties_the_text` |
| rows after a checkpoint | 1500 written, 990 loaded | `test_rows_behind_a_checkpoint_are_lost` |
| a clock steps back | 1300, 1100 loaded | `test_clock_that_steps_back_loses_what_came_after` |
| the disk is full | 300 writes "ok", 42 on disk | `test_full_disk_is_not_noticed` |
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.errors import AntiphonError
from tests.clocks import ManualClock
from tests.kernel.crash.faults import Fault, inject
from tests.kernel.kernel.calls import OpenKernel
from tests.waiting import until

HOUR_MS = 3_600_000


def every(transactions: int) -> Limits:
    """A snapshot every so many transactions, and none at the end."""
    return Limits(snapshot_transactions=transactions, snapshot_transactions_on_close=10**9)


async def write(kernel: Kernel, block: str | None, characters: str) -> str:
    """Append one by one, each acknowledged."""
    amy = kernel.open_session(kernel.owner, "test")
    if block is None:
        request = {"role": "user", "kind": "text", "status": "done"}
        block = str((await kernel.call(amy, "block.create", request))["block_id"])
    at = len((await kernel.context()).document.text(block))
    for number, character in enumerate(characters):
        insert = {"block_id": block, "offset": at + number, "insert": character}
        await kernel.call(amy, "block.splice", insert)
    return block


async def text_of(open_kernel: OpenKernel, block: str) -> str:
    kernel = await open_kernel(every(10**9))
    text = (await kernel.context()).document.text(block)
    await kernel.close()
    return text


def snapshots(data: Path) -> list[tuple[int, int]]:
    with sqlite3.connect(data / "journal.db") as database:
        sql = "SELECT s.seq, (SELECT max(seq) FROM ops) FROM snapshots s"
        return database.execute(sql).fetchall()


async def snapshot_written(data: Path) -> None:
    await until(lambda: snapshots(data), "a snapshot is written")


@pytest.mark.sqlite
async def test_squash_empties_the_text(data: Path, open_kernel: OpenKernel) -> None:
    """There: 200 characters squashed to none. Here: a snapshot replaces no transaction."""
    kernel = await open_kernel(every(20))
    block = await write(kernel, None, "s" * 40)
    await snapshot_written(data)
    await kernel.close()
    assert await text_of(open_kernel, block) == "s" * 40
    with sqlite3.connect(data / "journal.db") as database:
        (count,) = database.execute("SELECT count(*) FROM ops").fetchone()
        assert count > 40
        database.execute("DELETE FROM snapshots")
    assert await text_of(open_kernel, block) == "s" * 40


@pytest.mark.sqlite
async def test_rows_behind_a_checkpoint_are_lost(data: Path, open_kernel: OpenKernel) -> None:
    """There: 1500 characters, 990 after loading. Here: what came after a snapshot is read too."""
    kernel = await open_kernel(every(20))
    block = await write(kernel, None, "c" * 25)
    await snapshot_written(data)
    await kernel.close()
    kernel = await open_kernel(every(10**9))
    await write(kernel, block, "d" * 15)
    await kernel.close()
    ((seq, last),) = snapshots(data)
    assert last - seq >= 15
    assert await text_of(open_kernel, block) == "c" * 25 + "d" * 15


@pytest.mark.sqlite
async def test_clock_that_steps_back_loses_what_came_after(
    data: Path, open_kernel: OpenKernel, clock: ManualClock
) -> None:
    """There: 1300 characters, 1100 after loading. Here: order is a number, not the time."""
    kernel = await open_kernel(every(20))
    block = await write(kernel, None, "e" * 25)
    await snapshot_written(data)
    clock.ms -= HOUR_MS
    await write(kernel, block, "f" * 10)
    await kernel.close()
    assert await text_of(open_kernel, block) == "e" * 25 + "f" * 10
    assert (await run_checks(data)).clean


@pytest.mark.sqlite
@pytest.mark.parametrize("step", ["BEGIN", "INSERT INTO ops", "COMMIT"])
async def test_full_disk_is_not_noticed(open_kernel: OpenKernel, step: str) -> None:
    """There: 300 of 300 writes "ok", 42 on disk. Here: what is not on disk is not acknowledged."""
    kernel = await open_kernel(every(50))
    block = await write(kernel, None, "g" * 10)
    mend = inject(Fault(step, after=False))
    try:
        for _ in range(5):
            with pytest.raises(AntiphonError, match="Nothing was acknowledged"):
                await write(kernel, block, "h")
    finally:
        mend()
    await kernel.close()
    assert await text_of(open_kernel, block) == "g" * 10
