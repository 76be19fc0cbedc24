"""Starting a kernel from the command line, and the name by which a command is called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from antiphon.cli.join import pick_guest_name
from antiphon.cli.launcher import KernelLauncher, program
from antiphon_kernel.client.discovery import kernel_at
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.fork_server import SCRIPT, run_process, start_process
from tests.waiting import wait_until


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose kernel is ended after the test."""
    folder = tmp_path / "data"
    yield folder
    end_kernel(folder, signal.SIGTERM)


def end_kernel(data: Path, number: signal.Signals) -> None:
    address = kernel_at(data)
    if address is None:
        return
    os.kill(address.pid, number)
    wait_until(lambda: kernel_at(data) is None, "the kernel ends")


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[Any]]:
    """Return the processes that are started, which are forked if they can be."""
    # What forks them takes its time to begin, which is not that of a kernel.
    run_process([SCRIPT, "--version"])
    processes = list[subprocess.Popen[Any]]()

    def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        processes.append(start_process(command, **options))
        return processes[-1]

    replaced = SimpleNamespace(**(vars(subprocess) | {"Popen": start}))
    monkeypatch.setattr("antiphon.cli.launcher.subprocess", replaced)
    return processes


def test_kernel_launchers_started_at_once_find_same_kernel(
    data: Path, tmp_path: Path, started: list[subprocess.Popen[Any]]
) -> None:
    found: list[int] = []

    def start() -> None:
        starter = KernelLauncher(data, tmp_path)
        starter.start()
        found.append(starter.wait().pid)

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    running = [one.pid for one in started if one.poll() is None]
    assert running == found[:1], "the others have ended, and cannot come up later"


def test_kernel_is_started_only_if_none_runs_and_again_once_if_it_died(
    data: Path, tmp_path: Path
) -> None:
    starter, other = KernelLauncher(data, tmp_path), KernelLauncher(data, tmp_path)
    assert starter.start()
    first = starter.wait().pid
    assert not other.start()
    assert other.wait().pid == first
    starter.restart()
    assert kernel_at(data) is not None, "a living kernel is left alone"
    end_kernel(data, signal.SIGKILL)
    starter.restart()
    second = kernel_at(data)
    assert second is not None
    assert second.pid != first
    end_kernel(data, signal.SIGKILL)
    with pytest.raises(AntiphonError, match="a second time"):
        starter.restart()


def test_kernel_that_cannot_start_is_reported_with_its_log(data: Path, tmp_path: Path) -> None:
    starter = KernelLauncher(data, tmp_path, ("--play", str(tmp_path / "missing.jsonl")))
    starter.start()
    with pytest.raises(AntiphonError, match=r"missing\.jsonl") as failed:
        starter.wait()
    assert failed.value.code is ErrorCode.NO_KERNEL


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AntiphonError, match="--data") as failed:
        KernelLauncher(tmp_path / "file" / "data", tmp_path).start()
    assert failed.value.code is ErrorCode.NO_KERNEL


def test_guests_get_different_names_and_give_them_back(tmp_path: Path) -> None:
    take = "from antiphon.cli.join import pick_guest_name as take;"
    code = f"import sys, pathlib; {take} print(take(pathlib.Path(sys.argv[1])), flush=True)"
    first = start_process(
        [sys.executable, "-c", code + "; sys.stdin.read()", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        assert first.stdout is not None
        assert first.stdout.readline() == "guest\n"
        assert pick_guest_name(tmp_path) == "guest2"
        assert first.stdin is not None
        first.stdin.close()
    assert pick_guest_name(tmp_path) == "guest"


def test_program_name_is_callable_from_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `make demo` nothing is on the path, and still what is told to be typed works."""
    script = tmp_path / "a checkout" / ".venv" / "bin" / "antiphon"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/antiphon"])
    assert program() == ".venv/bin/antiphon"
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert program() == f"'{script}'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "antiphon"
