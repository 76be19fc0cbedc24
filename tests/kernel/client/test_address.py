"""Address of a kernel, as its data folder has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, read_address, stated_address
from antiphon_kernel.client.trust import found
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises

ADDRESS = KernelAddress(
    pid=1, kernel="k", sync="ws://127.0.0.1:1/sync", http="http://127.0.0.1:1", token="t"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found(tmp_path)
    return tmp_path


def test_address_reads_back(data: Path) -> None:
    (data / ADDRESS_FILE).write_text(ADDRESS.model_dump_json())
    assert stated_address(data) == ADDRESS


@pytest.mark.parametrize("content", [None, "", "{", "{}", '{"pid": "x"}'])
def test_read_address_of_unreadable_file_raises_no_kernel(data: Path, content: str | None) -> None:
    if content is not None:
        (data / ADDRESS_FILE).write_text(content)
    with raises(ErrorCode.NO_KERNEL) as failure:
        read_address(data)
    assert str(data) in failure.value.message


def test_socket_that_is_not_there_is_not_reachable(tmp_path: Path) -> None:
    address = ADDRESS.model_copy(update={"socket": str(tmp_path / "gone.sock")})
    assert address.reachable_socket is None


def test_replica_loads_nothing_of_the_host() -> None:
    code = (
        "import sys, antiphon_kernel.client.replica, antiphon_kernel.client.tool_client\n"
        "heavy = {'uvicorn', 'starlette', 'aiosqlite', 'sqlite3'} & sys.modules.keys()\n"
        "own = [name for name in sys.modules if name.startswith('antiphon_kernel.')]\n"
        "host = [name for name in own if name.split('.')[1] in ('doors', 'kernel', 'journal')]\n"
        "sys.exit(str((heavy, host)) if heavy or host else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
