"""A kernel that is killed leaves no command behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon_kernel.client.address import read_address
from antiphon_kernel.client.tool_client import ToolClient
from tests.processes import has_ended
from tests.waiting import wait_until

KILLED_IN_BETWEEN = """
import asyncio, os, signal, time
from pathlib import Path
from antiphon_kernel.turns.shell import WATCHDOG, run_shell

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
    command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json"]
    command += ["--data", str(data), "--project", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as kernel:
        assert kernel.stdout is not None
        kernel.stdout.readline()
        try:
            asyncio.run(run_command(data, "true"))
            nohup = "trap '' HUP TERM; sleep 1000 & echo $! $$ > pids; wait"
            asyncio.run(run_command(data, nohup))
            told = tmp_path / "pids"
            wait_until(
                lambda: told.exists() and len(told.read_text().split()) == 2, "both commands run"
            )
            pids = [int(pid) for pid in told.read_text().split()]
            assert not any(map(has_ended, pids))
        finally:
            os.kill(kernel.pid, signal.SIGKILL)
        wait_until(lambda: all(map(has_ended, pids)), "no command outlives its kernel")


def test_command_does_not_begin_before_the_watchdog_knows_it(tmp_path: Path) -> None:
    """A kernel that is killed in between leaves no command that nobody knows."""
    killed = subprocess.run([sys.executable, "-c", KILLED_IN_BETWEEN], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    group = int((tmp_path / "group").read_text())
    wait_until(lambda: has_ended(group), "the command ends with the kernel")
    assert not (tmp_path / "begun").exists()
