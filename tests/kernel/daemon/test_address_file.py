"""`kernel.json`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, stated_address
from antiphon_kernel.daemon.address_file import remove_address, write_address
from antiphon_kernel.types.errors import AntiphonError


def address(data: Path, pid: int) -> KernelAddress:
    return KernelAddress(
        pid=pid,
        kernel="0" * 32,
        sync="ws://127.0.0.1:1/sync",
        http="http://127.0.0.1:1",
        socket=str(data / "kernel.sock"),
        token="secret",
        data=str(data),
    )


def test_address_file_written_is_read_back_equal(tmp_path: Path) -> None:
    written = address(tmp_path, os.getpid())
    write_address(tmp_path, written)
    assert stated_address(tmp_path) == written


def test_address_file_is_readable_by_its_user_only(tmp_path: Path) -> None:
    (tmp_path / ADDRESS_FILE).touch(mode=0o644)
    write_address(tmp_path, address(tmp_path, os.getpid()))
    assert stat.S_IMODE((tmp_path / ADDRESS_FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [ADDRESS_FILE]


def test_kernel_removes_its_own_but_not_its_successors(tmp_path: Path) -> None:
    write_address(tmp_path, address(tmp_path, os.getpid() + 1))
    remove_address(tmp_path)
    assert stated_address(tmp_path).pid == os.getpid() + 1

    write_address(tmp_path, address(tmp_path, os.getpid()))
    remove_address(tmp_path)
    with pytest.raises(AntiphonError, match="antiphon serve"):
        stated_address(tmp_path)
    remove_address(tmp_path)
