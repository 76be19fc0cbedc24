"""Moves between files and a database: whole or not at all, with nobody at work on either."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from antiphon_kernel.maintenance import move
from antiphon_kernel.maintenance.move import (
    copy_database,
    move_from_database,
    move_to_database,
    tables,
)
from antiphon_kernel.maintenance.restore import restore
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.storage import JOURNAL_FILE, back_up
from antiphon_kernel.storage.schema import AUTH_SCHEMA, JOURNAL_SCHEMA
from antiphon_kernel.storage.stores import open_tables
from antiphon_kernel.types.clock import SystemClock
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.kernel.crash.faults import in_a_process
from tests.kernel.sharing_kernels import kernel_on, write

NEWEST = JOURNAL_SCHEMA.newest


def rows_of(store: str) -> dict[str, int]:
    """Return how many rows each table of a database has."""
    sql = " UNION ALL ".join(f"SELECT '{one}', count(*) FROM {one}" for one in tables())
    with psycopg.connect(store) as connection:
        return dict(connection.execute(sql).fetchall())


async def test_move_killed_half_way_leaves_the_source_and_an_empty_target(
    sound: Path, store: str, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in sound.glob("*.db")}
    assert await died(sound, store, to_database=True)
    assert set(rows_of(store).values()) == {0}
    assert {path.name: path.read_bytes() for path in sound.glob("*.db")} == before

    await move_to_database(sound, store)
    moved = rows_of(store)
    folder = tmp_path / "back"
    folder.mkdir()
    assert await died(folder, store, to_database=False)
    assert not [*folder.glob("*.db")]
    assert rows_of(store) == moved
    move_from_database(store, folder)
    assert (await run_checks(folder)).clean


async def died(data: Path, store: str, *, to_database: bool) -> bool:
    """Move in a process that is killed when it has copied some tables."""
    ended = await in_a_process(move_and_die, data, store, to_database)
    return ended == -signal.SIGKILL


def move_and_die(data: Path, store: str, to_database: bool) -> None:
    def die_at_ops(self: Any, table: str, rows: Any) -> int:
        if table == "journal.ops":
            os.kill(os.getpid(), signal.SIGKILL)
        return found[type(self)](self, table, rows)

    found = {one: one.add for one in (move.DatabaseTables, move.FileTables)}
    for one in found:
        one.add = die_at_ops  # type: ignore[method-assign]
    if to_database:
        asyncio.run(move_to_database(data, store))
    else:
        move_from_database(store, data)


async def test_move_into_a_database_in_use_or_not_empty_is_refused(
    sound: Path, store: str, tmp_path: Path
) -> None:
    await move_to_database(sound, store)
    before = rows_of(store)
    there = r"not empty: there are rows in .*journal\.kernel, journal\.principals"
    with pytest.raises(AntiphonError, match=there):
        await move_to_database(sound, store)
    lease = (
        "INSERT INTO journal.kernels (address, lease_until)"
        " VALUES ('http://10.0.0.1:7410', clock_timestamp() + interval '1 minute')"
    )
    with psycopg.connect(store) as connection:
        connection.execute(lease)
    folder = tmp_path / "back"
    folder.mkdir()
    with pytest.raises(AntiphonError, match=r"at http://10\.0\.0\.1:7410: end them"):
        await move_to_database(sound, store)
    with pytest.raises(AntiphonError, match=r"at http://10\.0\.0\.1:7410: end them"):
        move_from_database(store, folder)
    with pytest.raises(AntiphonError, match=r"has auth\.db, journal\.db already"):
        move_from_database(store, sound)
    assert not [*folder.iterdir()]
    assert rows_of(store) == before


async def test_rows_that_do_not_arrive_as_they_were_are_refused(sound: Path, store: str) -> None:
    for schema in (JOURNAL_SCHEMA, AUTH_SCHEMA):
        await (await open_tables(store, schema)).close()
    with psycopg.connect(store) as connection:
        connection.execute(
            "CREATE FUNCTION journal.falsify() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN NEW.time = NEW.time + 1; RETURN NEW; END$$;"
            " CREATE TRIGGER falsify BEFORE INSERT ON journal.stored_ops FOR EACH ROW"
            " WHEN (NEW.id = (3::bigint << 32) + 1) EXECUTE FUNCTION journal.falsify()"
        )
    with raises(ErrorCode.STORAGE_FAILED) as caught:
        await move_to_database(sound, store)
    assert "journal.ops has not arrived as it was" in caught.value.message
    assert set(rows_of(store).values()) == {0}


async def test_text_that_is_not_utf8_is_refused(sound: Path, store: str) -> None:
    with sqlite3.connect(sound / JOURNAL_FILE) as database:
        database.execute("UPDATE contexts SET label = CAST(x'ff' AS TEXT) WHERE number = 1")
    database.close()
    with raises(ErrorCode.STORAGE_FAILED) as caught:
        await move_to_database(sound, store)
    assert "can't decode byte" in caught.value.message
    assert set(rows_of(store).values()) == {0}


async def test_numbers_go_on_after_those_that_were_moved(
    sound: Path, store: str, tmp_path: Path
) -> None:
    await move_to_database(sound, store)
    async with kernel_on(store, tmp_path / "shared") as (kernel, amy):
        await kernel.call(amy, "context.create", {"label": "new"})
        await write(kernel, amy, "new", "x")
        await kernel.call(amy, "kernel.invite", {"role": "viewer", "name": "vera"})
        await kernel.principal("zoe")
    folder = tmp_path / "copy"
    folder.mkdir()
    copy_database(store, folder)
    report = await run_checks(folder)
    assert [str(one) for one in report.all()] == []
    assert [one.row.label for one in report.contexts][-1] == "new"


async def test_backup_of_a_database_that_is_written_to_is_one_moment_and_has_no_secret(
    sound: Path, store: str, tmp_path: Path
) -> None:
    await move_to_database(sound, store)
    backup = tmp_path / "backup.db"
    async with kernel_on(store, tmp_path / "shared") as (kernel, amy):
        blocks = [
            (await kernel.call(amy, "block.create", {"role": "user", "kind": "text"}))["block_id"]
            for _ in range(2)
        ]
        written = asyncio.Event()

        async def write() -> None:
            """The same letter goes to one block after the other."""
            while True:
                for block in blocks:
                    insert = {"block_id": block, "offset": 0, "insert": "x"}
                    await kernel.call(amy, "block.splice", insert)
                written.set()

        writer = asyncio.create_task(write())
        await written.wait()
        await asyncio.to_thread(copy_database, store, tmp_path)
        assert not writer.done()
        writer.cancel()
        await asyncio.wait([writer])
    back_up(tmp_path / JOURNAL_FILE, backup)
    with sqlite3.connect(backup) as database:
        keys = {row[0] for row in database.execute("SELECT key FROM kernel")}
    database.close()
    assert "cluster_secret" not in keys and "owner" in keys

    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("DROP SCHEMA journal, auth CASCADE")
    folder = tmp_path / "restored"
    folder.mkdir()
    done = await restore(backup, folder, SystemClock())
    assert (done.contexts, done.damaged) == (5, ())
    await move_to_database(folder, store)
    async with kernel_on(store, tmp_path / "shared") as (kernel, _):
        document = (await kernel.context()).document
        first, second = (len(document.text(block)) for block in blocks)
        assert first >= 1 and first - second in (0, 1)


async def test_copy_of_tables_that_this_version_may_not_use_is_refused(
    store: str, tmp_path: Path
) -> None:
    with psycopg.connect(store) as connection:
        connection.execute("UPDATE journal.schema SET version = 99, usable_from = 98")
    with raises(ErrorCode.STORAGE_FAILED) as caught:
        copy_database(store, tmp_path)
    assert f"version 99 and can be used from 98 on, this antiphon knows {NEWEST}" in str(
        caught.value
    )
