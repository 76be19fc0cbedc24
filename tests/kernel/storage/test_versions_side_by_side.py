"""Kernels of two versions on one database: additive tables serve both, others refuse the older."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from antiphon_kernel.storage.postgres import PostgresDatabase
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises
from tests.kernel.sharing_kernels import kernel_on, texts, write

TODAY = POSTGRES_SCHEMAS["journal"]
ADDED = (
    "ALTER TABLE contexts ADD COLUMN colour TEXT NOT NULL DEFAULT 'white';"
    "CREATE TABLE moods (context BIGINT PRIMARY KEY REFERENCES contexts (number));"
    "INSERT INTO kernel VALUES ('migrated', 'once');"
)
TOMORROW = replace(TODAY, migrations=(*TODAY.migrations, ADDED))


async def test_kernels_of_today_and_tomorrow_write_into_one_database(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kernel_on(store, tmp_path / "today") as (today, amy):
        await write(today, amy, "default", "before")
        with monkeypatch.context() as patch:
            patch.setitem(POSTGRES_SCHEMAS, "journal", TOMORROW)
            tomorrow = kernel_on(store, tmp_path / "tomorrow")
            newer, again = await tomorrow.__aenter__()
        try:
            await newer.call(again, "context.create", {"label": "new"})
            await write(newer, again, "new", "by tomorrow's")
            await write(today, amy, "default", "by today's, after the migration")
            await today.call(amy, "context.create", {"label": "old"})
            await write(today, amy, "old", "in a table with a column more")
        finally:
            await tomorrow.__aexit__(None, None, None)
    async with kernel_on(store, tmp_path / "today") as (today, amy):
        assert await texts(today, "default") == ["before", "by today's, after the migration"]
        assert await texts(today, "new") == ["by tomorrow's"]
        assert await texts(today, "old") == ["in a table with a column more"]


@pytest.mark.parametrize("there", ["nothing", "today's tables"])
async def test_tables_are_migrated_once_by_kernels_that_start_at_once(
    store: str, there: str
) -> None:
    if there == "nothing":
        with psycopg.connect(store) as connection:
            connection.execute("DROP SCHEMA journal, auth CASCADE")
    opened = await asyncio.gather(*(PostgresDatabase.open(store, TOMORROW) for _ in range(5)))
    for database in opened:
        assert await database.select("SELECT value FROM kernel WHERE key = 'migrated'") == [
            ("once",)
        ]
        await database.close()


async def test_tables_that_this_version_may_not_use_are_refused(store: str) -> None:
    newest = TODAY.newest + 1
    newer = replace(TOMORROW, usable_from=newest)
    await (await PostgresDatabase.open(store, newer)).close()
    with raises(ErrorCode.STORAGE_FAILED) as caught:
        await PostgresDatabase.open(store, TODAY)
    assert f"has version {newest}, this antiphon knows {TODAY.newest}" in caught.value.message
    assert "newer" in caught.value.message
