"""One real kernel process: it starts, is found, is alone on its folder, and ends well."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, read_address
from antiphon_kernel.client.discovery import kernel_at, newest_kernel, running_kernels
from antiphon_kernel.daemon.run import owner_name
from tests.waiting import PATIENCE, wait_until


@contextmanager
def kernel(data: Path, project: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A kernel process, killed at the end if it is still there."""
    command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json"]
    command += ["--data", str(data), "--project", str(project), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> KernelAddress:
    assert process.stdout is not None
    return KernelAddress.model_validate_json(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
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


def test_port_that_is_taken_is_said_in_one_sentence(tmp_path: Path) -> None:
    with kernel(tmp_path / "a", tmp_path) as first:
        port = first_line(first).http.rpartition(":")[2]
        with kernel(tmp_path / "b", tmp_path, "--port", port) as second:
            assert second.wait(PATIENCE) == 1
            assert second.stderr is not None
            said = second.stderr.read()
    assert said.count("\n") == 1
    assert "in use" in said


def test_kernel_that_starts_again_has_the_port_that_invitations_name(tmp_path: Path) -> None:
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
        first_line(process)


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
