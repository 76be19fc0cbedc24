"""A real Postgres for tests: one server for a whole run, a fresh database for each test.

It is Debian's (`/usr/lib/postgresql`), or whatever is in PATH; where there is none, the tests that
need one are skipped. It refuses to run as root: then it runs as the user `postgres`.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from antiphon_kernel.storage import AuthStore, Journal

USER = "postgres"
_TEMPLATE = "antiphon_template"
_OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "log_line_prefix": "%d_",
    "max_connections": "400",
    "shared_buffers": "64MB",
}

_names = itertools.count()


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    in_path = shutil.which("initdb")
    return found[-1].parent if found else Path(in_path).parent if in_path else None


class PostgresServer:
    """One server in a folder of its own, on a port of loopback and a unix socket."""

    def __init__(self, folder: Path, port: int, programs: Path) -> None:
        self.folder, self.port, self._programs = folder, port, programs

    @classmethod
    def create(cls, programs: Path, parent: Path | None = None) -> PostgresServer:
        """Make a new server in `parent`, or in memory if there is any; it does not run yet."""
        if parent is None and (in_memory := Path("/dev/shm")).is_dir():
            parent = in_memory
        folder = Path(tempfile.mkdtemp(prefix="antiphon-pg-", dir=parent))
        if os.getuid() == 0:
            os.chown(folder, pwd.getpwnam(USER).pw_uid, -1)
        with socket.create_server(("127.0.0.1", 0)) as free:
            server = cls(folder, free.getsockname()[1], programs)
        server._run("initdb", "-A", "trust", "-U", USER, "-N", "--no-locale", "-E", "UTF8")
        return server

    def start(self, **options: str) -> None:
        """Start it; returns when it takes connections."""
        settings = {**_OPTIONS, "port": str(self.port), **options}
        settings["unix_socket_directories"] = str(self.folder)
        words = " ".join(f"-c {name}={value}" for name, value in settings.items())
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-s", "-l", log, "-o", words)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `immediate` as a power failure would, `fast` in order."""
        self._run(*self._stop(mode))

    def remove_when_unused(self, lock: Path) -> None:
        """Stop and remove it once nobody has the lock any more: a process waits for that."""
        stop = " ".join(self._command(*self._stop("immediate")))
        subprocess.Popen(
            ["flock", str(lock), "sh", "-c", f"{stop}; rm -rf {self.folder}"],
            start_new_session=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def pid(self) -> int:
        """The process that has started all the others of the server."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def url(self, database: str) -> str:
        """The URL of a database, over TCP."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Carry out one statement in a connection of its own; the rows, if it has any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def create_database(self) -> str:
        """Make a database with the tables; its name."""
        name = f"test_{os.getpid()}_{next(_names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE} STRATEGY file_copy")
        return name

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def create_template(self) -> None:
        """Make what `create_database` copies."""
        self.execute(f"CREATE DATABASE {_TEMPLATE}")
        asyncio.run(_open_once(self.url(_TEMPLATE)))

    def _stop(self, mode: str) -> tuple[str, ...]:
        return "pg_ctl", "stop", "-w", "-s", "-m", mode

    def _run(self, *words: str) -> None:
        subprocess.run(self._command(*words), check=True, stdout=subprocess.DEVNULL, cwd="/")

    def _command(self, program: str, *words: str) -> list[str]:
        return as_server(str(self._programs / program), "-D", str(self.folder / "data"), *words)


def as_server(*command: str) -> list[str]:
    """Return a command that the user of the servers carries out."""
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return [*(user if os.getuid() == 0 else ()), *command]


async def _open_once(url: str) -> None:
    await (await Journal.open(url)).close()
    await (await AuthStore.open(url)).database.close()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The server of this test run, for all its workers."""
    programs = binaries()
    if programs is None:
        pytest.skip("Postgres is not installed (Debian: apt install postgresql)")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    users, running = shared / "postgres.lock", shared / "postgres"
    with users.open("w") as used, (shared / "postgres.starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        fcntl.flock(used, fcntl.LOCK_SH)
        folder, _, port = running.read_text().partition(" ") if running.exists() else ("", "", "")
        if folder and Path(folder).exists():
            server = PostgresServer(Path(folder), int(port), programs)
        else:
            server = PostgresServer.create(programs)
            server.remove_when_unused(users)  # also if this run is killed at once
            server.start()
            server.create_template()
            running.write_text(f"{server.folder} {server.port}")
        fcntl.flock(starting, fcntl.LOCK_UN)
        yield server


@pytest.fixture
def store(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh database with the tables in it."""
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)
