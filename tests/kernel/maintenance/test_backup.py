"""A backup is one moment of a running kernel; restored it is equal, under a new epoch."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.restore import restore
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.storage import back_up
from antiphon_kernel.types.clock import SystemClock
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.id_set import decode_state_vector
from tests.errors import raises
from tests.kernel.kernel.calls import Caller

pytestmark = pytest.mark.sqlite


def contents(document: Document) -> list[tuple[object, str]]:
    return [(document.header(block), document.text(block)) for block in document.block_ids()]


async def test_backup_of_a_kernel_that_is_writing_is_one_moment_of_it(
    kernel: Kernel, call: Caller, make: Any, tmp_path: Path, data: Path
) -> None:
    blocks = [await make("", status="done") for _ in range(2)]
    writing = True

    written = asyncio.Event()

    async def write() -> None:
        """The same word goes to one block after the other."""
        while writing:
            for block in blocks:
                await call("block.splice", block_id=block, offset=0, insert="x")
            written.set()

    writer = asyncio.create_task(write())
    copies = []
    for number in range(5):
        written.clear()
        await written.wait()
        copies.append(tmp_path / f"backup-{number}.db")
        await asyncio.to_thread(back_up, data / "journal.db", copies[-1])
    writing = False
    await writer
    lengths = []
    for copy in copies:
        folder = tmp_path / copy.stem
        folder.mkdir()
        await restore(copy, folder, SystemClock())
        assert (await run_checks(folder)).clean
        other = await Kernel.open(folder, folder, registry=kernel.registry)
        document = (await other.context()).document
        first, second = (len(document.text(block)) for block in blocks)
        assert first - second in (0, 1)
        lengths.append(first)
        await other.close()
    assert lengths == sorted(lengths)


async def test_restore_yields_equal_documents_and_rejects_older_replicas(
    kernel: Kernel, call: Caller, bo: Actor, make: Any, data: Path, tmp_path: Path, open_kernel: Any
) -> None:
    block = await make("one two three", status="done")
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 0, "insert": "zero "})
    await kernel.create_context("other")
    backup = tmp_path / "backup.db"
    back_up(data / "journal.db", backup)
    before = contents((await kernel.context()).document)
    blame = (await call("block.blame", block_id=block))["runs"]
    await call("block.splice", block_id=block, offset=0, insert="later ")
    replica = (await kernel.context()).document.state_vector()
    epoch = (await kernel.context()).row.epoch
    await kernel.close()

    done = await restore(backup, data, SystemClock())
    assert done.contexts == 2
    assert done.damaged == ()
    again: Kernel = await open_kernel()
    context = await again.context()
    assert contents(context.document) == before
    assert again.id == kernel.id
    assert context.row.epoch == context.document.epoch != epoch
    assert context.document.genesis_client not in decode_state_vector(replica)
    amy_again = again.open_session(again.owner, "test")
    assert (await again.call(amy_again, "block.blame", {"block_id": block}))["runs"] == blame
    await again.call(amy_again, "block.undo", {"block_id": block})
    assert context.document.text(block) == "zero "
    await again.close()
    assert (await run_checks(data)).clean
    assert done.aside is not None
    with sqlite3.connect(done.aside) as kept:
        assert kept.execute("SELECT count(*) FROM ops WHERE operation = 'splice'").fetchone() == (
            2,
        )


async def test_backup_overwrites_nothing_and_names_a_place_that_cannot_be_written_to(
    kernel: Kernel, data: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"somebody's file")
    with raises(ErrorCode.INVALID_PARAMS):
        back_up(data / "journal.db", there)
    assert there.read_bytes() == b"somebody's file"
    with pytest.raises(AntiphonError, match=r"nowhere/backup\.db could not be written") as caught:
        back_up(data / "journal.db", tmp_path / "nowhere" / "backup.db")
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert {path.name for path in tmp_path.iterdir()} == {"there", "data"}


@pytest.mark.parametrize("damage", ["no database", "another database", "cut short", "newer"])
async def test_restore_of_damaged_backup_is_rejected_and_keeps_journal(
    kernel: Kernel, data: Path, tmp_path: Path, damage: str
) -> None:
    backup = tmp_path / "backup.db"
    back_up(data / "journal.db", backup)
    await kernel.close()
    if damage == "no database":
        backup.write_bytes(b"no database at all" * 100)
    elif damage == "another database":
        backup.unlink()
        with sqlite3.connect(backup) as other:
            other.execute("CREATE TABLE cats (name)")
    elif damage == "cut short":
        backup.write_bytes(backup.read_bytes()[:-9000])
    else:
        with sqlite3.connect(backup) as newer:
            newer.execute("PRAGMA user_version = 99")
    before = (data / "journal.db").read_bytes()
    files = {path.name for path in data.iterdir()}
    with raises(ErrorCode.STORAGE_FAILED):
        await restore(backup, data, SystemClock())
    assert (data / "journal.db").read_bytes() == before
    assert {path.name for path in data.iterdir()} == files
