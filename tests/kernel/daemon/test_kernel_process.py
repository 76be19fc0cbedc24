"""One real kernel process: it starts, is found, is alone on its folder, and ends well.

At its end everybody is told why, what was half done is brought to an end, and all is on disk. After
`git clean -fdx` it says so, and ends with an exit code that does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_state_path
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, read_address
from antiphon_kernel.client.discovery import kernel_at, newest_kernel, running_kernels
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.daemon.run import owner_name
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.storage import JOURNAL_FILE
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.yjs.frames import SyncStep1, encode_frame
from tests.fork_server import run_process, start_process
from tests.processes import has_ended
from tests.waiting import PATIENCE, wait_until


@contextmanager
def kernel(data: Path, project: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A kernel process, killed at the end if it is still there."""
    command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json"]
    command += ["--data", str(data), "--project", str(project), *arguments]
    with start_process(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> KernelAddress:
    assert process.stdout is not None
    return KernelAddress.model_validate_json(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_kernel_process_stores_its_address_and_removes_it_on_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    data = tmp_path / "data"
    with kernel(data, tmp_path) as process:
        printed = first_line(process)
        assert printed == read_address(data) == kernel_at(data)
        assert printed.pid == process.pid
        assert stat.S_IMODE((data / ADDRESS_FILE).stat().st_mode) == 0o600
        assert [one.pid for one in running_kernels()] == [process.pid]
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert not (data / ADDRESS_FILE).exists()
        assert list(running_kernels()) == []


def test_kernel_process_starts_without_its_database_in_no_folder_of_one(
    tmp_path: Path, store: str
) -> None:
    data = tmp_path / "data"
    with kernel(data, tmp_path, "--store", store) as process:
        assert first_line(process).pid == process.pid
    with kernel(data, tmp_path) as process:
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        assert "set ANTIPHON_STORE to its URL" in process.stderr.read()
    assert not (data / JOURNAL_FILE).exists()


def test_kernel_processes_started_at_once_leave_one_serving_and_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with kernel(data, tmp_path) as first, kernel(data, tmp_path) as second:
        wait_until(
            lambda: first.poll() is not None or second.poll() is not None, "one of two gives up"
        )
        loser, winner = (first, second) if first.poll() is not None else (second, first)
        assert loser.returncode == 4
        assert loser.stderr is not None
        assert f"process {winner.pid}" in loser.stderr.read()
        assert first_line(winner).pid == winner.pid


def test_kernel_process_without_clients_ends_after_idle_time(tmp_path: Path) -> None:
    with kernel(tmp_path / "data", tmp_path, "--idle", "0.1") as process:
        first_line(process)
        assert process.wait(PATIENCE) == 0


def test_kernel_that_starts_again_has_the_port_that_invitations_name_unless_it_is_taken(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    addresses = []
    for _ in range(2):
        with kernel(data, tmp_path) as process:
            addresses.append(first_line(process).http)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    assert addresses[0] == addresses[1]
    taken = ("127.0.0.1", int(addresses[0].rpartition(":")[2]))
    with socket.create_server(taken), kernel(data, tmp_path) as process:
        another = first_line(process).http
        assert another not in addresses
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    (data / "kernel.port").write_text("no port\n")
    with kernel(data, tmp_path) as process:
        port = first_line(process).http.rpartition(":")[2]
        with kernel(tmp_path / "b", tmp_path, "--port", port) as second:
            assert second.wait(PATIENCE) == 1
            assert second.stderr is not None
            said = second.stderr.read()
    assert said.count("\n") == 1 and "in use" in said


def test_newest_kernel_of_the_nearest_folder_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    with kernel(tmp_path / "a", tmp_path) as outer, kernel(tmp_path / "b", inner) as first:
        first_line(outer)
        first_line(first)
        with kernel(tmp_path / "c", inner) as second:
            first_line(second)
            found = newest_kernel(inner / "deeper")
            assert found is not None
            assert found.pid == second.pid
            outside = newest_kernel(tmp_path / "other")
            assert outside is not None
            assert outside.pid == outer.pid


@pytest.mark.parametrize(
    ("login", "name"), [("ada", "ada"), ("Ada.L", "adal"), ("-x", "x"), ("Ω", "owner")]
)
def test_login_name_becomes_a_username(login: str, name: str) -> None:
    assert owner_name(login) == name


REASON = "The kernel is shutting down."
STREAMED = "streamed, and in no block yet"


class Running:
    """A kernel process, and how to speak to it."""

    def __init__(self, process: subprocess.Popen[str], data: Path) -> None:
        self.process = process
        self.data = data
        self.address: KernelAddress = first_line(process)
        self.calls = ToolClient(lambda: self.address)

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.calls.call(tool, params)

    async def socket(self, path: str) -> ClientConnection:
        base = self.address.http.replace("http", "ws", 1)
        return await connect(f"{base}{path}?token={self.address.token}", max_size=None)

    async def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(self.process.wait, PATIENCE) == 0


@contextlib.asynccontextmanager
async def running(data: Path, project: Path) -> AsyncIterator[Running]:
    with kernel(data, project) as process:
        one = Running(process, data)
        yield one
        await one.calls.close()


async def goodbye(socket: ClientConnection) -> tuple[int | None, str | None]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE)
    return socket.close_code, socket.close_reason


async def test_sigterm_keeps_answered_calls_and_a_prefix_of_the_rest_and_tells_everybody(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "data", tmp_path) as one:
        others = [await one.socket("/sync/default"), await one.socket("/call")]
        await others[0].send(encode_frame(SyncStep1(b"\x00")))
        await others[1].send(json.dumps({"id": 1, "tool": "session.whoami"}))
        for other in others:
            await other.recv()
        made = await one.call("block.create", role="user", kind="text", content="")
        block = made["block_id"]
        socket = await one.socket("/call")
        for number in range(300):
            insert = {"block_id": block, "offset": 0, "insert": f"{number} "}
            await socket.send(json.dumps({"id": number, "tool": "block.splice", "params": insert}))
        ending = asyncio.create_task(one.end())
        answered = 0
        with contextlib.suppress(ConnectionClosed):
            while True:
                answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
                answered += "result" in answer
        assert (socket.close_code, socket.close_reason) == (1012, REASON)
        assert [await goodbye(other) for other in others] == [(1012, REASON)] * 2
        await ending
    async with running(tmp_path / "data", tmp_path) as one:
        text = (await one.call("block.read", block_id=block))["content"]
        numbers = [int(word) for word in text.split()][::-1]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= answered


async def test_sigterm_writes_streamed_text_and_marks_running_blocks(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data, tmp_path) as one:
        model = ToolClient(lambda: one.address, as_name="aria")
        made = await model.call("block.create", {"kind": "tool_call", "content": "I "})
        block = made["block_id"]
        await model.call("block.append", {"block_id": block, "text": STREAMED, "stream": True})
        await one.end()
        await model.close()
    assert not (data / "kernel.json").exists()
    wal = data / "journal.db-wal"
    assert not wal.exists() or wal.stat().st_size == 0
    with sqlite3.connect(f"file:{data}/journal.db?immutable=1", uri=True) as alone:
        # Everything is in the file itself.
        (last,) = alone.execute(
            "SELECT operation FROM ops ORDER BY context, seq DESC LIMIT 1"
        ).fetchone()
        assert last == "interrupt"
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    async with running(data, tmp_path) as one:
        read = await one.call("block.read", block_id=block)
        assert read["content"] == "I " + STREAMED
        (found,) = (await one.call("block.list"))["blocks"]
        assert (found["status"], found["stop_reason"]) == ("error", "interrupted")


async def test_client_that_does_not_read_its_goodbye_holds_nobody_up(tmp_path: Path) -> None:
    async with running(tmp_path / "data", tmp_path) as one:
        made = await one.call("block.create", role="user", kind="text", content="x" * 4_000_000)
        deaf = await one.socket("/sync/default")
        await deaf.send(encode_frame(SyncStep1(b"\x00")))
        deaf.transport.pause_reading()
        append = {"block_id": made["block_id"], "text": "y" * 4_000_000}
        await one.calls.call("block.append", append)
        await one.end()
        deaf.transport.abort()


KILLED_IN_BETWEEN = """
import asyncio, os, signal, time
from pathlib import Path
from antiphon_kernel.shell import WATCHDOG, run_shell

def die(group: int) -> None:
    Path("group").write_text(str(group))
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)

async def ignore(text: str) -> None:
    pass

WATCHDOG.watch = die
asyncio.run(run_shell("touch begun; sleep 1000", Path.cwd(), ignore))
"""


async def run_command(data: Path, command: str) -> None:
    calls = ToolClient(lambda: read_address(data))
    try:
        await calls.call("shell.run", {"command": command})
    finally:
        await calls.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_sigkill_of_the_kernel_ends_commands_and_what_they_started(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with kernel(data, tmp_path) as process:
        first_line(process)
        asyncio.run(run_command(data, "true"))
        nohup = "trap '' HUP TERM; sleep 1000 & echo $! $$ > pids; wait"
        asyncio.run(run_command(data, nohup))
        told = tmp_path / "pids"
        wait_until(lambda: told.exists() and len(told.read_text().split()) == 2, "both run")
        pids = [int(pid) for pid in told.read_text().split()]
        assert not any(map(has_ended, pids))
    wait_until(lambda: all(map(has_ended, pids)), "no command outlives its kernel")


def test_command_does_not_begin_before_the_watchdog_knows_it(tmp_path: Path) -> None:
    """A kernel that is killed in between leaves no command that nobody knows."""
    killed = subprocess.run([sys.executable, "-c", KILLED_IN_BETWEEN], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    group = int((tmp_path / "group").read_text())
    wait_until(lambda: has_ended(group), "the command ends with the kernel")
    assert not (tmp_path / "begun").exists()


LOSS = "journal.db was deleted or moved away while the kernel ran"

WORDS = [str(number) for number in range(20)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    return project


async def call(address: KernelAddress, tool: str, **params: Any) -> dict[str, Any]:
    calls = ToolClient(lambda: address.model_copy(update={"socket": None}))
    try:
        return await calls.call(tool, params)
    finally:
        await calls.close()


async def append(address: KernelAddress, block: str, count: int) -> int:
    """Return how many of so many appends were acknowledged; the others fail because of the loss."""
    acknowledged = 0
    for number in range(count):
        try:
            await call(address, "block.append", block_id=block, text=f"{number} ")
            acknowledged += 1
        except AntiphonError as error:
            if error.code != ErrorCode.STORAGE_FAILED or LOSS not in error.message:
                raise
    return acknowledged


async def words(address: KernelAddress, block: str) -> list[str]:
    content: str = (await call(address, "block.read", block_id=block))["content"]
    return content.split()


def fill_and_clean(address: KernelAddress, project: Path) -> str:
    block = str(asyncio.run(call(address, "block.create", role="user", kind="text"))["block_id"])
    assert asyncio.run(append(address, block, 20)) == 20
    subprocess.run(["git", "clean", "-fdxq"], cwd=project, check=True)
    return block


def test_kernel_acknowledges_nothing_after_git_clean_and_its_copy_has_the_rest(
    project: Path,
) -> None:
    data = project / ".antiphon"
    with kernel(data, project) as process:
        address = first_line(process)
        block = fill_and_clean(address, project)
        assert not data.exists()
        assert asyncio.run(append(address, block, 20)) == 0
        assert asyncio.run(words(address, block)) == WORDS
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        assert LOSS in process.stderr.read()
    assert not data.exists()
    (copy,) = (user_state_path("antiphon") / "rescued").iterdir()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    restore = [sys.executable, "-m", "antiphon_kernel", "restore", str(copy), "--data", str(data)]
    assert run_process(restore).returncode == 0
    with kernel(data, project) as process:
        assert asyncio.run(words(first_line(process), block)) == WORDS


def test_kernel_end_after_clean_leaves_files_of_next_kernel(project: Path) -> None:
    data = project / ".antiphon"
    with kernel(data, project) as first:
        first_line(first)
        subprocess.run(["git", "clean", "-fdxq"], cwd=project, check=True)
        with kernel(data, project) as second:
            address = first_line(second)
            made = asyncio.run(call(address, "block.create", role="user", kind="text"))
            assert asyncio.run(append(address, made["block_id"], 5)) == 5
            first.send_signal(signal.SIGTERM)
            assert first.wait(PATIENCE) == 1
            assert Path(str(address.socket)).exists()
            assert (data / "kernel.json").exists()
            os.kill(second.pid, signal.SIGKILL)
        with kernel(data, project) as third:
            address = first_line(third)
            assert asyncio.run(words(address, made["block_id"])) == WORDS[:5]
