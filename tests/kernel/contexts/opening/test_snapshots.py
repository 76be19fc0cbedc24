"""A context opens from its snapshot as it would from its transactions, or from these."""

from __future__ import annotations

import logging
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts.opening import snapshot_writer
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.maintenance.run_checks import run_checks
from tests.kernel.kernel.calls import OpenKernel

EAGER = Limits(snapshot_transactions=10, snapshot_transactions_on_close=1)
"""A snapshot every ten transactions, and one at every end."""

NEVER = Limits(snapshot_transactions=10**9, snapshot_transactions_on_close=10**9)

Open = Callable[[Limits], Awaitable[Kernel]]


@pytest.fixture
def reopen(open_kernel: OpenKernel) -> Open:
    """Closes the kernel that is open and opens the next one."""
    opened: list[Kernel] = []

    async def open_next(limits: Limits) -> Kernel:
        while opened:
            await opened.pop().close()
        opened.append(await open_kernel(limits))
        return opened[0]

    return open_next


def execute(data: Path, sql: str, *values: object) -> list[Any]:
    with sqlite3.connect(data / "journal.db") as database:
        return database.execute(sql, values).fetchall()


def contents(document: Document) -> list[tuple[object, str]]:
    return [(document.header(block), document.text(block)) for block in document.block_ids()]


async def write_at_random(kernel: Kernel, dice: random.Random, times: int) -> None:
    names = ("amy", "bo", "cy")
    actors = [kernel.open_session(await kernel.principal(name), "test") for name in names]
    blocks: list[str] = list((await kernel.context()).document.block_ids())
    for _ in range(times):
        actor = dice.choice(actors)
        if not blocks or dice.random() < 0.2:
            text = dice.choice(["", "a\nb\n", "漢字 😀\n" * 5])
            request = {"role": "user", "kind": "text", "content": text, "status": "done"}
            blocks.append((await kernel.call(actor, "block.create", request))["block_id"])
            continue
        block = dice.choice(blocks)
        length = len((await kernel.context()).document.text(block))
        offset = dice.randint(0, length)
        gone = dice.randint(0, min(3, length - offset))
        splice = {"block_id": block, "offset": offset, "delete_count": gone, "insert": "x😀"}
        await kernel.call(actor, "block.splice", splice)


@pytest.mark.sqlite
@pytest.mark.parametrize(("seed", "part_bytes"), [(1, 100), (2, 10**7)])
async def test_opening_gives_the_same_with_and_without_a_snapshot(
    reopen: Open, data: Path, seed: int, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_writer, "_PART_BYTES", part_bytes)
    dice, is_cut = random.Random(seed), False
    for _ in range(3):
        kernel = await reopen(EAGER)
        await write_at_random(kernel, dice, dice.randint(1, 40))
        live = contents((await kernel.context()).document)
        kernel = await reopen(EAGER if dice.random() < 0.5 else NEVER)
        context = await kernel.context()
        assert contents(context.document) == live
        await write_at_random(kernel, dice, dice.randint(1, 12))
        live = contents(context.document)
        kernel = await reopen(NEVER)
        assert execute(data, "SELECT count(*) FROM snapshots") == [(1,)]
        context = await kernel.context()
        assert contents(context.document) == live
        snapshot = await kernel.journal.snapshots.read(context.row)
        assert snapshot is not None
        is_cut |= len(snapshot.state) > 1  # what is written to meanwhile is kept whole
        execute(data, "DELETE FROM snapshots")
        kernel = await reopen(NEVER)
        assert contents((await kernel.context()).document) == live
    assert is_cut is (part_bytes == 100)
    await reopen(EAGER)
    assert [str(finding) for finding in (await run_checks(data)).all()] == []


async def test_snapshots_of_a_long_document_are_as_rare_as_it_is_long(reopen: Open) -> None:
    kernel = await reopen(EAGER)
    me, context = kernel.open_session(kernel.owner, "test"), await kernel.context()
    request = {"kind": "file", "content": "x" * 50_000}
    block = (await kernel.call(me, "block.create", request))["block_id"]
    written = set[int]()
    for _ in range(120):
        await kernel.call(me, "block.splice", {"block_id": block, "offset": 0, "insert": "y"})
        snapshot = await kernel.journal.snapshots.read(context.row)
        written.update([snapshot.seq] if snapshot is not None else [])
    # The first after ten transactions, the others after fifty; by tens there would be twelve.
    assert 2 <= len(written) <= 4


async def with_snapshot(reopen: Open, data: Path) -> list[tuple[object, str]]:
    """A context with a snapshot and some transactions behind it; what it holds."""
    kernel = await reopen(EAGER)
    await write_at_random(kernel, random.Random(1), 25)
    kernel = await reopen(NEVER)
    await write_at_random(kernel, random.Random(2), 5)
    held = contents((await kernel.context()).document)
    await kernel.close()
    assert execute(data, "SELECT count(*) FROM snapshots") == [(1,)]
    return held


DAMAGES = (
    "state = substr(state, 1, length(state) - 1)",
    "state = zeroblob(40)",
    "state = 'text'",
    "headers = x'00'",
    "state_vector = x'00'",
    "seq = seq - 1",
    "seq = seq + 100",
    "format = 77",
    "digest = zeroblob(16)",
)


@pytest.mark.sqlite
async def test_damaged_snapshot_is_left_out_and_the_log_says_so(
    reopen: Open, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held, kernel = await with_snapshot(reopen, data), None
    kept = data.rename(data.with_name("kept"))
    for damage in DAMAGES:
        shutil.copytree(kept, data)
        execute(data, f"UPDATE snapshots SET {damage}")
        report = await run_checks(data)
        assert [finding.check for finding in report.all()] == ["snapshot"], damage
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            kernel = await reopen(EAGER)
            assert contents((await kernel.context()).document) == held, damage
        assert "the snapshot of context default is left out" in caplog.text, damage
        await write_at_random(kernel, random.Random(3), 1)
        await kernel.close()
        assert (await run_checks(data)).clean, damage
        shutil.rmtree(data)


@pytest.mark.sqlite
async def test_snapshot_of_another_state_is_not_believed(
    reopen: Open, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Sound bytes, but of a journal that has lost its end."""
    held = await with_snapshot(reopen, data)
    (seq,) = execute(data, "SELECT seq FROM snapshots")[0]
    execute(data, "DELETE FROM ops WHERE seq >= ?", seq)
    assert "snapshot" in {str(finding.check) for finding in (await run_checks(data)).all()}
    with caplog.at_level(logging.WARNING):
        kernel = await reopen(NEVER)
        context = await kernel.context()
    assert context.seq == seq - 1
    assert contents(context.document) != held
    assert "left out" in caplog.text
    await kernel.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", range(2))
async def test_fork_begins_with_a_snapshot_that_says_what_its_transactions_say(
    reopen: Open, data: Path, seed: int
) -> None:
    dice = random.Random(seed)
    kernel = await reopen(NEVER)
    me = kernel.open_session(kernel.owner, "test")
    await write_at_random(kernel, dice, 40)
    versions = [{}, {"at": dice.randint(2, (await kernel.context()).seq)}]
    for number, version in enumerate(versions):
        params = {"context": "default", "label": f"fork-{number}", **version}
        made = await kernel.call(me, "context.fork", params)
        sql = "SELECT s.seq FROM snapshots s JOIN contexts c ON c.number = s.context WHERE c.id = ?"
        assert execute(data, sql, made["context_id"]) == [(made["context_version"],)]
    labels = [f"fork-{number}" for number in range(len(versions))]
    begun = [contents((await kernel.context(label)).document) for label in labels]
    assert all(begun)
    kernel = await reopen(NEVER)
    assert [contents((await kernel.context(label)).document) for label in labels] == begun
    await kernel.close()
    assert (await run_checks(data)).clean
    execute(data, "DELETE FROM snapshots")
    kernel = await reopen(NEVER)
    assert [contents((await kernel.context(label)).document) for label in labels] == begun
