"""A journal that cannot be opened says why and leaves nothing running; rows read as stored."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.storage import Database, Journal
from antiphon_kernel.storage.commit_rows import LAST_SEQ, op_id
from antiphon_kernel.storage.open_files import StorageLostError
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA, Schema
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.waiting import PATIENCE


async def refusal(path: Path) -> AntiphonError:
    """The error of opening; no thread may be left behind by it."""
    before = set(threading.enumerate())
    with pytest.raises(AntiphonError) as caught:
        await Kernel.open(path.parent, path.parent, registry=Registry(()), owner="amy")
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    return caught.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_new_file_has_the_newest_version_and_opens_again(path: Path) -> None:
    for _ in range(2):
        await (await Journal.open(path)).close()
    with sqlite3.connect(path) as reader:
        assert reader.execute("PRAGMA user_version").fetchone() == (JOURNAL_SCHEMA.newest,)


@pytest.mark.parametrize(
    ("version", "advice"), [(99, "use the antiphon that wrote it"), (3, "open it once with")]
)
async def test_file_of_a_version_that_is_not_known_is_refused(
    path: Path, version: int, advice: str
) -> None:
    with sqlite3.connect(path) as writer:
        writer.execute(f"PRAGMA user_version = {version}")
    message = (await refusal(path)).message
    assert f"has version {version}" in message and advice in message


async def test_file_that_is_no_database_is_refused_and_kept(path: Path) -> None:
    path.write_bytes(b"not a database, but perhaps somebody's only copy" * 50)
    before = path.read_bytes()
    await refusal(path)
    assert path.read_bytes() == before


async def test_principal_of_an_unknown_kind_is_named(path: Path) -> None:
    await (await Journal.open(path)).close()
    with sqlite3.connect(path) as writer:
        writer.execute("INSERT INTO principals VALUES (1, 'x', 'x', 'hologram', 0, NULL)")
    assert "hologram" in (await refusal(path)).message


async def test_migration_keeps_rows_and_raises_the_version(path: Path) -> None:
    first = "CREATE TABLE people (name TEXT NOT NULL);"
    second = "ALTER TABLE people ADD COLUMN role TEXT NOT NULL DEFAULT 'viewer';"
    database = await Database.open(path, Schema(1, first))
    await database.write([("INSERT INTO people VALUES (?)", [("amy",), ("bo",)])])
    await database.close()
    for _ in range(2):
        database = await Database.open(path, Schema(1, first, (second,)))
        rows = await database.select("SELECT name, role FROM people ORDER BY name")
        assert [tuple(row) for row in rows] == [("amy", "viewer"), ("bo", "viewer")]
        assert tuple((await database.select("PRAGMA user_version"))[0]) == (2,)
        await database.close()


async def test_migration_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    first = "CREATE TABLE people (name TEXT NOT NULL);"
    await (await Database.open(path, Schema(1, first))).close()
    broken = "DROP TABLE people; SELECT * FROM nothing;"
    with raises(ErrorCode.STORAGE_FAILED):
        await Database.open(path, Schema(1, first, (broken,)))
    database = await Database.open(path, Schema(1, first))
    assert await database.select("SELECT * FROM people") == []
    await database.close()


async def test_closing_while_more_is_written_is_not_taken_for_a_strangers_write(
    path: Path,
) -> None:
    database = await Database.open(path, Schema(1, "CREATE TABLE numbers (number INTEGER);"))
    await database.write([("INSERT INTO numbers VALUES (?)", [(1,)])])
    closing = asyncio.create_task(database.close())
    while not closing.done():
        try:
            await database.write([("INSERT INTO numbers VALUES (?)", [(2,)])])
        except AntiphonError as error:
            if isinstance(error, StorageLostError):
                raise
            break
    await closing
    assert database.lost is None


def test_transactions_of_a_context_come_after_each_other() -> None:
    numbers = [op_id(context, seq) for context in (1, 2) for seq in (1, 2, LAST_SEQ)]
    assert numbers == sorted(set(numbers))
