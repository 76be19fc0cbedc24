"""Work and messages of a refusal, counted in a real kernel and a real SSH server."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from antiphon.ssh.guest_processes import GuestProcesses
from antiphon.ssh.guest_session import SessionContext
from antiphon.ssh.kernel_link import KernelLink
from antiphon.ssh.server import listen
from tests.e2e.sharing import KEYGEN, NO_CHECKS, SSH, needs_openssh
from tests.kernel.served import ServedKernel, served_kernel
from tests.waiting import PATIENCE

pytestmark = needs_openssh


@dataclass
class Work:
    """Steps that the kernel and the SSH server have taken."""

    statements: list[str] = field(default_factory=list)
    key_operations: list[tuple[str, type]] = field(default_factory=list)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count what the real parts do."""
    one, connect = Work(), sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(one.statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    for name in ("sign", "verify"):
        operation = getattr(asyncssh.SSHKey, name)

        @wraps(operation)
        def counted(
            key: asyncssh.SSHKey, *args: Any, name: str = name, operation: Any = operation
        ) -> Any:
            one.key_operations.append((name, type(key)))
            return operation(key, *args)

        monkeypatch.setattr(asyncssh.SSHKey, name, counted)
    return one


@pytest.fixture
async def served(tmp_path: Path, work: Work) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path) as one:
        yield one


@pytest.fixture
async def port(tmp_path: Path, served: ServedKernel) -> AsyncIterator[int]:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    link = KernelLink(served.locate)
    await link.start()
    context = SessionContext(link, GuestProcesses(log), tmp_path / "guests", ask=False)
    key = asyncssh.generate_private_key("ssh-ed25519")
    acceptor = await listen(context, key, "127.0.0.1", 0)
    yield acceptor.get_port()
    acceptor.close()
    await asyncio.wait_for(acceptor.wait_closed(), PATIENCE)
    await link.close()
    os.close(log)


def key(folder: Path, name: str) -> Path:
    path = folder / name
    command = [KEYGEN or "", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


async def messages(port: int, private: Path, user: str) -> list[str]:
    """Return the messages of a refusal, as the real client sends and receives them."""
    client = await asyncio.create_subprocess_exec(
        SSH or "",
        *NO_CHECKS,
        *("-vvv", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"),
        *("-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-i", str(private)),
        *("-p", str(port), f"{user}@127.0.0.1", "export"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, told = await client.communicate()
    assert client.returncode == 255 and b"Permission denied (publickey)." in told
    return re.findall(r"(?:send|receive) packet: type \d+", told.decode())


async def test_refusal_takes_the_same_steps_for_known_and_unknown_keys_and_names(
    tmp_path: Path, served: ServedKernel, port: int, work: Work
) -> None:
    revoked, unknown = key(tmp_path, "revoked"), key(tmp_path, "unknown")
    line = Path(f"{revoked}.pub").read_text()
    added = await served.call("key.add", key=line, name="gus")
    await served.call("key.revoke", fingerprint=added["fingerprint"])
    assert work.statements
    taken = {}
    for user in ("gus", served.kernel.owner.username, "nobody-of-this-name"):
        for private in (revoked, unknown):
            work.statements.clear()
            work.key_operations.clear()
            seen = await messages(port, private, user)
            taken[user, private.name] = seen, work.key_operations[:], work.statements[:]
    (seen, operations, statements), *others = taken.values()
    assert "receive packet: type 51" in seen and operations
    assert all(one == (seen, operations, statements) for one in others), taken
