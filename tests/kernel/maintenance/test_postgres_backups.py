"""Backups by Postgres' own means hold everything that was acknowledged before their moment."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon_kernel.maintenance.move import copy_database
from antiphon_kernel.maintenance.run_checks import run_checks
from tests.kernel.sharing_kernels import kernel_on, texts, write
from tests.postgres import PostgresServer, as_server, binaries
from tests.waiting import until, wait_until


async def write_each(store: str, folder: Path, *words: str) -> None:
    """Write words into a block each; all are acknowledged."""
    async with kernel_on(store, folder / "shared") as (kernel, amy):
        for word in words:
            await write(kernel, amy, "default", word)


async def check(store: str, folder: Path, *words: str) -> None:
    """See that a database is sound, and holds these words."""
    copy = folder / "copy"
    copy.mkdir()
    copy_database(store, copy)
    report = await run_checks(copy)
    assert [str(one) for one in report.all()] == []
    async with kernel_on(store, folder / "shared") as (kernel, amy):
        assert await texts(kernel, "default") == [*words]
        await write(kernel, amy, "default", "and on")


async def test_dump_in_another_database_is_sound_and_whole(
    store: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    async with kernel_on(store, tmp_path / "shared") as (kernel, amy):
        await write(kernel, amy, "default", "one")
        programs = binaries()
        assert programs is not None
        dump = f"--file={tmp_path}/dump.sql"
        subprocess.run([programs / "pg_dump", dump, store], check=True)
        await write(kernel, amy, "default", "later")
    name = f"{store.rpartition('/')[2]}_other"
    postgres_server.execute(f"CREATE DATABASE {name}")
    other = postgres_server.url(name)
    try:
        load = f"--file={tmp_path}/dump.sql", "--quiet", "--set=ON_ERROR_STOP=1"
        subprocess.run([programs / "psql", *load, other], check=True, capture_output=True)
        # The kernel of the first database is in this one too, until its lease ends.
        ended = "SELECT max(lease_until) < clock_timestamp() FROM journal.kernels"
        await until(lambda: postgres_server.execute(ended, name) == [(True,)], "end of the lease")
        await check(other, tmp_path, "one")
    finally:
        postgres_server.drop_database(name)


@pytest.fixture
def archiving_server() -> Iterator[PostgresServer]:
    """A server of its own that archives its log into `archive` in its folder."""
    programs = binaries()
    if programs is None:
        pytest.skip("Postgres is not installed (Debian: apt install postgresql)")
    server = PostgresServer.create(programs)
    subprocess.run(as_server("mkdir", str(server.folder / "archive")), check=True)
    configure(server, archive_mode="on", archive_command=f"cp %p {server.folder}/archive/%f")
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


def configure(server: PostgresServer, **settings: str) -> None:
    """Write settings that `start` does not take, since there are spaces in them."""
    with (server.folder / "data" / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


async def test_base_backup_with_its_log_gives_any_moment_back(
    archiving_server: PostgresServer, tmp_path: Path
) -> None:
    server = archiving_server
    server.execute("CREATE DATABASE antiphon")
    await write_each(server.url("antiphon"), tmp_path, "before the backup")
    base = server.folder / "base"
    programs = binaries()
    assert programs is not None
    backup = as_server(str(programs / "pg_basebackup"), "--pgdata", str(base), "--checkpoint=fast")
    subprocess.run([*backup, "--dbname", server.url("postgres")], check=True, cwd="/")
    await write_each(server.url("antiphon"), tmp_path, "behind it", "and once more")
    ((moment,),) = server.execute("SELECT clock_timestamp()::text")
    await write_each(server.url("antiphon"), tmp_path, "what is not wanted back")
    server.stop("fast")

    shutil.rmtree(server.folder / "data")
    base.rename(server.folder / "data")
    configure(
        server,
        restore_command=f"cp {server.folder}/archive/%f %p",
        recovery_target_time=str(moment),
        recovery_target_action="promote",
    )
    (server.folder / "data" / "recovery.signal").touch()
    server.start()
    wait_until(
        lambda: server.execute("SELECT NOT pg_is_in_recovery()") == [(True,)], "the end of recovery"
    )
    await check(server.url("antiphon"), tmp_path, "before the backup", "behind it", "and once more")
