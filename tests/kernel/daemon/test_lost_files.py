"""`git clean -fdx` under a kernel that runs: it says so, and ends with an exit code that does."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_state_path

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.daemon.test_kernel_process import first_line, kernel
from tests.waiting import PATIENCE

REASON = "journal.db was deleted or moved away while the kernel ran"

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
            if error.code != ErrorCode.STORAGE_FAILED or REASON not in error.message:
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


def test_kernel_acknowledges_nothing_after_git_clean(project: Path) -> None:
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
        assert REASON in process.stderr.read()
    assert not data.exists()


def test_restore_from_copy_after_clean_brings_back_acknowledged_writes(project: Path) -> None:
    data = project / ".antiphon"
    with kernel(data, project) as process:
        address = first_line(process)
        block = fill_and_clean(address, project)
        assert asyncio.run(append(address, block, 1)) == 0
        # Not ended in order: nothing more is needed of this process.
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    (copy,) = (user_state_path("antiphon") / "rescued").iterdir()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    restore = [sys.executable, "-m", "antiphon_kernel", "restore", str(copy), "--data", str(data)]
    subprocess.run(restore, check=True, capture_output=True)
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
