"""The files of a kernel are deleted, replaced or cut while it runs: it says so and stops."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.storage.database import execute
from antiphon_kernel.storage.open_files import OpenFiles, StorageLostError
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.crash.faults import open_kernel

WAL = "journal.db-wal"


def remove_journal(data: Path) -> None:
    (data / "journal.db").unlink()


def remove_folder(data: Path) -> None:
    shutil.rmtree(data)


def rename_folder(data: Path) -> None:
    data.rename(data.with_name("renamed"))


def replace_by_copy(data: Path) -> None:
    copy = shutil.copy(data / "journal.db", data / "copy")
    Path(copy).replace(data / "journal.db")


def replace_by_symlink(data: Path) -> None:
    copy = shutil.copy(data / "journal.db", data / "copy")
    (data / "journal.db").unlink()
    (data / "journal.db").symlink_to(copy)


def remove_wal(data: Path) -> None:
    (data / WAL).unlink()


def replace_wal(data: Path) -> None:
    copy = shutil.copy(data / WAL, data / "copy")
    Path(copy).replace(data / WAL)


def truncate_wal(data: Path) -> None:
    os.truncate(data / WAL, 0)


def cut_wal(data: Path) -> None:
    os.truncate(data / WAL, (data / WAL).stat().st_size // 2)


def truncate_journal(data: Path) -> None:
    os.truncate(data / "journal.db", 0)


def overwrite_journal(data: Path) -> None:
    shutil.copyfile(data / "copy.before", data / "journal.db")


def remove_roles(data: Path) -> None:
    (data / "auth.db").unlink()


CUTS = (truncate_wal, cut_wal, truncate_journal, overwrite_journal)
LOSSES = (
    remove_journal,
    remove_folder,
    rename_folder,
    replace_by_copy,
    replace_by_symlink,
    remove_wal,
    replace_wal,
)

Loss = Callable[[Path], None]


@dataclass
class Writer:
    """Appends numbered words; remembers what was acknowledged."""

    kernel: Kernel
    actor: Actor
    block: str
    data: Path = Path()
    acknowledged: list[int] = field(default_factory=list)

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.actor, tool, params)

    async def append(self, number: int) -> None:
        await self.call("block.append", block_id=self.block, text=f"{number} ")
        self.acknowledged.append(number)

    async def read(self) -> list[int]:
        content = (await self.call("block.read", block_id=self.block))["content"]
        return [int(word) for word in content.split()]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def writer(data: Path) -> AsyncIterator[Writer]:
    one = await some_writer(await open_kernel(data), data)
    yield one
    await one.kernel.close()


async def some_writer(kernel: Kernel, data: Path) -> Writer:
    """Somebody who has written 20 words since the journal was copied."""
    actor = kernel.open_session(kernel.owner, "test")
    made = await kernel.call(actor, "block.create", {"kind": "tool_call"})
    writer = Writer(kernel, actor, made["block_id"], data)
    shutil.copy(data / "journal.db", data / "copy.before")
    for number in range(20):
        await writer.append(number)
    return writer


@pytest.mark.parametrize("lose", [*LOSSES, *CUTS])
async def test_commit_after_a_loss_is_refused_for_good_and_acknowledged_writes_are_copied(
    data: Path, tmp_path: Path, lose: Loss
) -> None:
    spare = tmp_path / "spare" / "copy.db"
    kernel = await open_kernel(data, spare=spare)
    writer = await some_writer(kernel, data)
    lose(data)
    told = set()
    for number in range(20, 23):
        with pytest.raises(StorageLostError, match="while the kernel ran") as refused:
            await writer.append(number)
        assert refused.value.code is ErrorCode.STORAGE_FAILED
        told.add(str(spare) in refused.value.message)
    with pytest.raises(StorageLostError):
        await writer.call("context.create", label="new")
    with pytest.raises(StorageLostError):
        await kernel.principal("somebody-new")
    await kernel.close()
    if lose in CUTS:
        return
    assert told == {True}
    restored = tmp_path / "restored"
    restored.mkdir()
    spare.rename(restored / "journal.db")
    assert await words_on_disk(restored, writer.block) == writer.acknowledged == list(range(20))


async def test_copy_that_cannot_be_made_is_not_promised(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    kernel = await open_kernel(data, spare=tmp_path / "file" / "copy.db")
    writer = await some_writer(kernel, data)
    remove_journal(data)
    with pytest.raises(StorageLostError, match="antiphon export"):
        await writer.append(20)
    assert "could not be saved elsewhere" in caplog.text
    assert "19 " in str(await writer.call("context.export"))
    await kernel.close()


async def test_journal_that_comes_back_stays_refused_until_the_restart(
    writer: Writer, data: Path
) -> None:
    (data / "journal.db").rename(data / "away")
    with pytest.raises(StorageLostError):
        await writer.append(20)
    (data / "away").rename(data / "journal.db")
    with pytest.raises(StorageLostError):
        await writer.append(21)
    await writer.kernel.close()
    assert await words_on_disk(data, writer.block) == list(range(20))


async def words_on_disk(data: Path, block: str) -> list[int]:
    kernel = await open_kernel(data)
    try:
        return await Writer(kernel, kernel.open_session(kernel.owner, "test"), block).read()
    finally:
        await kernel.close()


@pytest.mark.parametrize("lose", [remove_wal, replace_wal])
async def test_journal_after_loss_of_wal_contains_its_writes(
    writer: Writer, data: Path, tmp_path: Path, lose: Loss
) -> None:
    lose(data)
    with pytest.raises(StorageLostError):
        await writer.append(20)
    # As after SIGKILL: nothing else of the folder is used.
    copy = tmp_path / "killed"
    copy.mkdir()
    for name in ("journal.db", "auth.db", "auth.db-wal"):
        shutil.copy(data / name, copy)
    assert await words_on_disk(copy, writer.block) == list(range(20))


@pytest.mark.parametrize("lose", [truncate_wal, cut_wal])
async def test_journal_whose_log_was_cut_opens(writer: Writer, lose: Loss) -> None:
    lose(writer.data)
    with pytest.raises(StorageLostError):
        await writer.append(20)
    await writer.kernel.close()
    again = await open_kernel(writer.data)
    await again.close()
    assert [str(finding) for finding in (await run_checks(writer.data)).all()] == []


@pytest.mark.parametrize("lose", [remove_journal, rename_folder, replace_wal])
async def test_loss_in_the_middle_of_a_commit_is_not_acknowledged(
    writer: Writer, lose: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file goes when SQLite has it open for this very transaction."""

    def lose_between(connection: sqlite3.Connection, statements: Any, files: OpenFiles) -> None:
        def lose_at_commit(sql: str) -> None:
            if sql.startswith("COMMIT"):
                lose(writer.data)
                connection.set_trace_callback(None)

        connection.set_trace_callback(lose_at_commit)
        execute(connection, statements, files)

    monkeypatch.setattr("antiphon_kernel.storage.database.execute", lose_between)
    with pytest.raises(StorageLostError):
        await writer.append(20)


async def test_role_is_not_acknowledged_once_the_file_of_roles_is_gone(
    writer: Writer, data: Path
) -> None:
    guest = await writer.kernel.principal("guest")
    remove_roles(data)
    with pytest.raises(StorageLostError, match="auth"):
        await writer.call("kernel.role", principal=guest.username, role="viewer")
    with pytest.raises(StorageLostError, match="auth"):
        await writer.append(20)


async def test_loss_is_one_line_in_the_log(
    writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    remove_journal(writer.data)
    for number in range(3):
        with pytest.raises(StorageLostError):
            await writer.append(number)
        writer.kernel.open_session(writer.kernel.owner, "test")
    severe = [one for one in caplog.records if one.levelname == "CRITICAL"]
    assert [one.message for one in severe] == [str(writer.kernel.journal.lost)]
    assert "journal.db" in severe[0].message
    assert str(writer.data) in severe[0].message
