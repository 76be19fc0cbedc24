"""A schema in Postgres: opened, brought up to date, used again after the server has gone."""

from __future__ import annotations

import asyncio

import pytest

from antiphon_kernel.storage import AUTH_SCHEMA
from antiphon_kernel.storage.postgres import PostgresDatabase, translate
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA, Schema
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.kernel.served import CuttableProxy
from tests.postgres import PostgresServer

NAMES = "CREATE TABLE people (name TEXT NOT NULL);"
ROLES = "ALTER TABLE people ADD COLUMN role TEXT NOT NULL DEFAULT 'viewer';"


def schema(*migrations: str, usable_from: int = 1) -> Schema:
    return Schema(1, NAMES, migrations, name="staff", usable_from=usable_from)


def test_both_stores_have_the_same_versions() -> None:
    for one in (JOURNAL_SCHEMA, AUTH_SCHEMA):
        assert POSTGRES_SCHEMAS[one.name].newest == one.newest


@pytest.mark.parametrize(
    ("sqlite", "postgres"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"),
        ("SELECT ?2, ?1, ?2", "SELECT $2, $1, $2"),
        (
            "a IN (SELECT value FROM json_each(?)) LIMIT ?",
            "a = ANY ($1) LIMIT nullif($2::bigint, -1)",
        ),
        ("a NOT IN (SELECT value FROM json_each(?))", "a <> ALL ($1)"),
        ("a IS NOT b AND c IS NOT NULL", "a IS DISTINCT FROM b AND c IS NOT NULL"),
    ],
)
def test_statement_is_translated(sqlite: str, postgres: str) -> None:
    assert translate(sqlite) == postgres


async def test_migration_keeps_rows_and_raises_the_version(store: str) -> None:
    database = await PostgresDatabase.open(store, schema())
    await database.write([("INSERT INTO people (name) VALUES (?)", [("amy",), ("bo",)])])
    await database.close()
    at_once = (PostgresDatabase.open(store, schema(ROLES)) for _ in range(3))
    for database in await asyncio.gather(*at_once):
        rows = await database.select("SELECT name, role FROM people ORDER BY name")
        assert rows == [("amy", "viewer"), ("bo", "viewer")]
        assert await database.select("SELECT version FROM schema") == [(2,)]
        await database.close()


async def test_migration_that_fails_leaves_everything_as_it_was(store: str) -> None:
    await (await PostgresDatabase.open(store, schema())).close()
    with raises(ErrorCode.STORAGE_FAILED):
        await PostgresDatabase.open(store, schema("DROP TABLE people; SELECT * FROM nothing;"))
    database = await PostgresDatabase.open(store, schema())
    assert await database.select("SELECT name FROM people") == []
    await database.close()


async def test_older_kernel_uses_newer_tables_that_say_so(store: str) -> None:
    await (await PostgresDatabase.open(store, schema(ROLES, usable_from=1))).close()
    database = await PostgresDatabase.open(store, schema())
    await database.write([("INSERT INTO people (name) VALUES (?)", [("amy",)])])
    assert await database.select("SELECT version, usable_from FROM schema") == [(2, 1)]
    await database.close()


@pytest.mark.parametrize("version", [2, 99])
async def test_tables_of_a_version_that_is_too_new_are_refused(store: str, version: int) -> None:
    database = await PostgresDatabase.open(store, schema())
    await database.write([("UPDATE schema SET version = ?, usable_from = ?", [(version, 2)])])
    await database.close()
    with pytest.raises(AntiphonError, match=f"has version {version}"):
        await PostgresDatabase.open(store, schema())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://amy:secret@127.0.0.1:1/none",
        "postgresql://amy:secret@127.0.0.1:1:2/none",
        "postgresql://amy:secret@127.0.0.1:port/none",
    ],
)
async def test_store_that_cannot_be_reached_is_named_without_its_password(url: str) -> None:
    with pytest.raises(AntiphonError) as caught:
        await PostgresDatabase.open(url, schema())
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert "secret" not in str(caught.value) + repr(caught.value.__cause__)


async def test_connection_that_the_server_ended_is_made_again(
    postgres_server: PostgresServer, store: str
) -> None:
    database = await PostgresDatabase.open(store, schema())
    insert = "INSERT INTO people (name) VALUES (?)"
    await database.write([(insert, [("amy",)])])
    assert len(await database.select("SELECT name FROM people")) == 1
    await asyncio.to_thread(
        postgres_server.execute,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{store.rpartition('/')[2]}'",
    )
    await asyncio.to_thread(postgres_server.execute, "SELECT 1")
    await database.write([(insert, [("bo",)])])
    assert len(await database.select("SELECT name FROM people")) == 2
    await database.close()


async def test_write_whose_connection_is_cut_off_fails_and_the_next_succeeds(
    postgres_server: PostgresServer, store: str
) -> None:
    relay = CuttableProxy(postgres_server.port)
    await relay.start()
    url = store.replace(f":{postgres_server.port}/", f":{relay.port}/")
    database = await PostgresDatabase.open(url, schema())
    insert = "INSERT INTO people (name) VALUES (?)"
    await database.write([(insert, [("amy",)])])
    relay.stop()
    cut_off = asyncio.create_task(database.write([(insert, [("bo",)])]))
    reading = asyncio.create_task(database.select("SELECT name FROM people"))
    await asyncio.sleep(0)
    relay.cut()
    for task in (cut_off, reading):
        with raises(ErrorCode.STORAGE_FAILED):
            await task
    relay.go_on()
    await database.write([(insert, [("cleo",)])])
    rows = await database.select("SELECT name FROM people WHERE name <> 'bo' ORDER BY name")
    assert rows == [("amy",), ("cleo",)]
    await database.close()
    await relay.close()


async def test_write_that_is_cancelled_leaves_a_usable_database(store: str) -> None:
    database = await PostgresDatabase.open(store, schema())
    await database.write([("INSERT INTO people (name) VALUES (?)", [("amy",)])])
    for statement in ("SELECT pg_sleep(60)", "INSERT INTO people SELECT pg_sleep(60)::text"):
        task = asyncio.create_task(database.write([(statement, [()])]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await database.select("SELECT name FROM people") == [("amy",)]
        await database.write([("UPDATE people SET name = ?", [("amy",)])])
    await database.close()
