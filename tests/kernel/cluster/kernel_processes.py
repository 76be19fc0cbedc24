"""Several kernel processes on one Postgres, with links between them that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg

from antiphon_kernel.client.address import KernelAddress, read_address
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.fork_server import start_process
from tests.kernel.cluster.database_link import DatabaseLink
from tests.kernel.served import CuttableProxy
from tests.waiting import PATIENCE

_ADDRESS_OF_LINK: Final = """
CREATE FUNCTION journal.address_of_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.address <> '' THEN
        NEW.address = 'http://127.0.0.1:' || coalesce(
            CASE substring(NEW.address FROM '[0-9]+$')::int LINKS END,
            substring(NEW.address FROM '[0-9]+$')::int
        );
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER address_of_link BEFORE INSERT OR UPDATE ON journal.kernels
    FOR EACH ROW EXECUTE FUNCTION journal.address_of_link();
"""


@dataclass(eq=False)
class KernelProcess:
    """One kernel of a cluster, started anew on the same data folder after each end."""

    data: Path
    project: Path
    port: int
    """Port at which other kernels and clients reach it."""
    to_database: DatabaseLink
    from_peers: CuttableProxy
    process: subprocess.Popen[bytes] | None = None
    is_stopped: bool = False
    """Whether nobody is sent to it though it runs."""
    starts: int = 0

    @property
    def is_up(self) -> bool:
        """Return whether clients are sent to it."""
        return self.process is not None and self.process.poll() is None and not self.is_stopped

    def locate(self) -> KernelAddress:
        """Return its address, as its owner's clients find it."""
        return read_address(self.data)

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        environment = os.environ | {"ANTIPHON_STORE": self.to_database.url}
        command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json", "--idle", "0"]
        command += ["--data", str(self.data), "--project", str(self.project)]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        self.starts += 1
        with (self.data.parent / f"{self.data.name}-{self.starts}.err").open("wb") as errors:
            self.process = start_process(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        with self.process.stdout as output:
            line = await asyncio.to_thread(output.readline)
        assert line, f"a kernel did not start: {Path(errors.name).read_text()}"
        json.loads(line)
        self.is_stopped = False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.is_stopped = number is signal.SIGSTOP
        self.process.send_signal(number)

    async def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        assert self.process is not None
        self.process.kill()
        await asyncio.to_thread(self.process.wait, PATIENCE)

    async def end(self) -> None:
        """Let it end in order; clients are sent to others from now on."""
        assert self.process is not None
        self.is_stopped = True
        self.process.terminate()
        await asyncio.to_thread(self.process.wait, PATIENCE)


@dataclass(eq=False)
class KernelCluster:
    """Kernels, and the way that clients take to one of them."""

    kernels: list[KernelProcess]
    choose: random.Random
    token: str = ""
    """Token of an invitation, which every kernel takes."""
    balancer: CuttableProxy = field(init=False)

    def __post_init__(self) -> None:
        self.balancer = CuttableProxy(self._port)

    def _port(self) -> int:
        up = [one.port for one in self.kernels if one.is_up]
        return self.choose.choice(up) if up else 1

    def locate(self) -> KernelAddress:
        """Return the address of any kernel that is up, as its owner's clients find it."""
        for one in self.choose.sample(self.kernels, len(self.kernels)):
            if one.is_up:
                with contextlib.suppress(AntiphonError):
                    return one.locate()
        raise AntiphonError(ErrorCode.NO_KERNEL, "No kernel of the cluster is up.")


@contextlib.asynccontextmanager
async def kernel_cluster(
    folder: Path, store: str, count: int, choose: random.Random
) -> AsyncIterator[KernelCluster]:
    """Start kernels on a database that listens on a port of this machine.

    The database gives out the address of the link to a kernel in place of its own.
    """
    project = folder / "project"
    project.mkdir()
    kernels = []
    for number in range(count):
        port = _free_port()
        to_database, from_peers = DatabaseLink(store), CuttableProxy(port)
        await to_database.start()
        await from_peers.start()
        data = folder / f"kernel{number}"
        kernels.append(KernelProcess(data, project, port, to_database, from_peers))
    links = " ".join(f"WHEN {one.port} THEN {one.from_peers.port}" for one in kernels)
    async with await psycopg.AsyncConnection.connect(store, autocommit=True) as connection:
        await connection.execute(_ADDRESS_OF_LINK.replace("LINKS", links).encode())
    cluster = KernelCluster(kernels, choose)
    await cluster.balancer.start()
    try:
        for one in kernels:
            await one.start()
        yield cluster
    finally:
        for one in kernels:
            if one.process is not None and one.process.poll() is None:
                one.process.send_signal(signal.SIGCONT)
                await one.kill()
            await one.to_database.close()
            await one.from_peers.close()
        await cluster.balancer.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
