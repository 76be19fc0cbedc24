"""One kernel per data folder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, stated_address
from antiphon_kernel.client.ownership import LOCK_FILE
from antiphon_kernel.daemon.data_folder import DataFolderInUse, hold_folder
from antiphon_kernel.daemon.run import remove_address, write_address
from antiphon_kernel.types.errors import AntiphonError

HOLD = """
import sys, time
from pathlib import Path
from antiphon_kernel.daemon.data_folder import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """Another process that holds `path`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_one_is_told_who_has_the_folder(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        with pytest.raises(DataFolderInUse, match=str(other.pid)), hold_folder(tmp_path):
            pass
        (tmp_path / LOCK_FILE).write_text("somebody\n")
        with pytest.raises(DataFolderInUse, match="another process"), hold_folder(tmp_path):
            pass
        assert other.stdin is not None
        other.stdin.close()


def test_killed_holder_leaves_nothing_to_clean_up(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with hold_folder(tmp_path):
        pass


def test_folder_is_private_and_keeps_itself_alone_out_of_version_control(tmp_path: Path) -> None:
    path = tmp_path / "project" / ".antiphon"
    for _ in range(2):
        with hold_folder(path), hold_folder(tmp_path / "elsewhere"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
            assert (path / ".gitignore").read_text() == "*\n"
            assert not (tmp_path / "elsewhere" / ".gitignore").exists()
    (path / ".gitignore").write_text("mine\n")
    with hold_folder(path):
        assert (path / ".gitignore").read_text() == "mine\n"


def test_link_in_the_place_of_its_ignore_file_is_not_followed(tmp_path: Path) -> None:
    data = tmp_path / ".antiphon"
    data.mkdir()
    (data / ".gitignore").symlink_to(tmp_path / "elsewhere")
    with hold_folder(data):
        assert not (tmp_path / "elsewhere").exists()


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


def test_address_file_is_read_back_equal_and_readable_by_its_user_only(tmp_path: Path) -> None:
    (tmp_path / ADDRESS_FILE).touch(mode=0o644)
    written = address(tmp_path, os.getpid())
    write_address(tmp_path, written)
    assert stated_address(tmp_path) == written
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
