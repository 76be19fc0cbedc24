"""Data folders that may be opened: those that this user founded here, or has said to trust."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon_kernel.client import trust as trust_module
from antiphon_kernel.client.address import ADDRESS_FILE, KernelAddress, read_address
from antiphon_kernel.client.ownership import state_path
from antiphon_kernel.client.trust import FOUNDED_VARIABLE, ID_FILE, found, is_trusted, trust
from antiphon_kernel.daemon.data_folder import hold_folder
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that this user has founded, with a journal in it."""
    data = tmp_path / "project" / ".antiphon"
    found(data)
    (data / "journal.db").touch(0o600)
    return data


def refusal(data: Path) -> str:
    with raises(ErrorCode.UNTRUSTED_FOLDER) as caught:
        is_trusted(data)
    return caught.value.message


def test_trust_of_a_founded_folder_is_remembered(data: Path) -> None:
    assert is_trusted(data)
    assert (data / ID_FILE).stat().st_mode & 0o777 == 0o600
    assert found(data) is None


def test_trust_of_a_folder_that_is_not_there_is_no_question(tmp_path: Path) -> None:
    assert not is_trusted(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert not is_trusted(tmp_path / "empty")


def test_trust_of_a_moved_folder_is_asked_for_again(data: Path) -> None:
    moved = data.parent.rename(data.parent.with_name("moved")) / ".antiphon"
    assert "antiphon trust" in refusal(moved)
    trust(moved)
    assert is_trusted(moved)


def test_trust_of_a_copy_is_not_that_of_the_original(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "clone" / ".antiphon"
    shutil.copytree(data, copy)
    refusal(copy)
    assert is_trusted(data)


def test_trust_of_a_folder_ends_when_another_one_takes_its_place(data: Path) -> None:
    shutil.rmtree(data)
    data.mkdir(0o700)
    (data / "journal.db").touch(0o600)
    refusal(data)
    (data / ID_FILE).write_text("f" * 32 + "\n")
    (data / ID_FILE).chmod(0o600)
    refusal(data)


def test_trust_draws_an_id_that_the_folders_maker_does_not_know(tmp_path: Path) -> None:
    clone, next_clone = tmp_path / "clone", tmp_path / "next"
    clone.mkdir(0o700)
    (clone / "auth.db").touch(0o600)
    (clone / ID_FILE).write_text("f" * 32 + "\n")
    (clone / ID_FILE).chmod(0o600)
    shutil.copytree(clone, next_clone)
    trust(clone)
    assert is_trusted(clone)
    shutil.rmtree(clone)
    next_clone.rename(clone)
    refusal(clone)


def test_trust_without_an_id_gives_the_folder_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "auth.db").touch(0o600)
    refusal(tmp_path)
    trust(tmp_path)
    assert is_trusted(tmp_path)


def test_registry_drops_folders_that_are_gone(data: Path, tmp_path: Path) -> None:
    shutil.rmtree(data)
    found(tmp_path / "another")
    assert len(list(state_path("folders").glob("*.json"))) == 1


def test_found_by_several_processes_at_once_is_trusted_by_each(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from antiphon_kernel.client.trust import *\n"
    code += "found(Path(sys.argv[1])); assert is_trusted(Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path / "data")]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0] * 3
    assert is_trusted(tmp_path / "data")


def test_found_without_a_state_folder_says_what_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    monkeypatch.setenv(FOUNDED_VARIABLE, "")
    data = tmp_path / "data"
    warning = found(data)
    assert warning is not None and "XDG_STATE_HOME" in warning
    assert is_trusted(data), "as long as this process and its children live"
    shutil.copytree(data, tmp_path / "copy")
    assert "antiphon trust" in refusal(tmp_path / "copy")
    monkeypatch.setenv(FOUNDED_VARIABLE, "")
    assert "antiphon trust" in refusal(data) and "XDG_STATE_HOME" in refusal(data)


def test_refusal_with_a_state_folder_does_not_blame_it(data: Path) -> None:
    (data / ID_FILE).write_text("0" * 32 + "\n")
    assert "XDG_STATE_HOME" not in refusal(data)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_folder_that_others_may_write_in_is_refused(data: Path, mode: int) -> None:
    data.chmod(mode)
    assert "chmod go-w" in refusal(data)
    with pytest.raises(AntiphonError, match="other users may write"):
        trust(data)


@pytest.mark.parametrize("name", ["journal.db", "kernel.json", ID_FILE])
def test_file_that_others_may_write_is_refused(data: Path, name: str) -> None:
    (data / name).touch()
    (data / name).chmod(0o622)
    assert name in refusal(data)


def test_symbolic_links_are_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    assert "symbolic link" in refusal(tmp_path / "link")
    (data / "auth.db").symlink_to(tmp_path / "elsewhere")
    assert "auth.db" in refusal(data)


def test_folder_that_cannot_be_looked_at_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AntiphonError, match="Choose a folder") as caught:
        is_trusted(tmp_path / ("d" * 300))
    assert caught.value.code is ErrorCode.NO_KERNEL


@pytest.mark.parametrize("name", ["folder.id", "kernel.json", "journal.db", "kernel.sock"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_pipes_and_folders_in_the_place_of_files_are_refused(
    tmp_path: Path, name: str, make: Callable[[Path, int], None]
) -> None:
    data = tmp_path / "clone" / ".antiphon"
    data.mkdir(parents=True)
    make(data / name, 0o700)
    assert f"{name} is no ordinary file" in refusal(data)
    with pytest.raises(AntiphonError, match="no ordinary file"):
        trust(data)


def test_folder_below_a_place_where_everybody_writes_is_refused(data: Path) -> None:
    data.parent.chmod(0o777)
    assert "everybody may write" in refusal(data)
    data.parent.chmod(0o1777)
    assert is_trusted(data)


def test_path_that_is_too_long_is_named_with_its_length(tmp_path: Path) -> None:
    data = tmp_path.joinpath(*(["d" * 100] * 5))
    with pytest.raises(AntiphonError, match=r"has \d{3} bytes, at most 480"):
        is_trusted(data)


@as_root
@pytest.mark.parametrize("name", [".", "journal.db"])
def test_trust_of_file_of_another_user_is_denied(data: Path, name: str) -> None:
    os.chown(data / name, NOBODY, NOBODY)
    assert f"belongs to user {NOBODY}" in refusal(data)
    with pytest.raises(AntiphonError):
        trust(data)


@as_root
def test_registry_of_another_user_is_not_believed(data: Path) -> None:
    os.chown(state_path("folders"), NOBODY, NOBODY)
    refusal(data)


@as_root
def test_folder_that_is_founded_beside_a_registry_of_another_user_works_until_the_end(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOUNDED_VARIABLE, "")
    os.chown(state_path("folders"), NOBODY, NOBODY)
    before = set(state_path("folders").iterdir())
    assert "cannot be remembered" in str(found(tmp_path / "other"))
    assert is_trusted(tmp_path / "other")
    with pytest.raises(PermissionError):
        trust(data)
    assert set(state_path("folders").iterdir()) == before


# `kernel.json`


def address(**fields: object) -> KernelAddress:
    at = {"sync": "ws://127.0.0.1:1/sync", "http": "http://127.0.0.1:1"}
    return KernelAddress.model_validate(
        {"pid": os.getpid(), "kernel": "k", "token": "t", **at, **fields}
    )


State = Callable[[KernelAddress], None]


@pytest.fixture
def state(data: Path) -> State:
    """Writes `kernel.json`."""

    def write(address: KernelAddress) -> None:
        path = data / ADDRESS_FILE
        path.touch(0o600)
        path.write_text(address.model_dump_json(exclude_none=True))

    return write


def test_address_of_the_process_that_holds_the_lock_is_believed(data: Path, state: State) -> None:
    with hold_folder(data):
        state(address())
        assert read_address(data) == address()
        state(address(pid=os.getpid() + 1))
        with pytest.raises(AntiphonError, match="does not hold"):
            read_address(data)
    state(address())
    with pytest.raises(AntiphonError, match="does not hold") as caught:
        read_address(data)
    assert caught.value.code is ErrorCode.NO_KERNEL


@pytest.mark.parametrize("content", [None, "", "{", "{}", '{"pid": "x"}'])
def test_read_address_of_unreadable_file_raises_no_kernel(data: Path, content: str | None) -> None:
    if content is not None:
        (data / ADDRESS_FILE).touch(0o600)
        (data / ADDRESS_FILE).write_text(content)
    with raises(ErrorCode.NO_KERNEL) as failure:
        read_address(data)
    assert str(data) in failure.value.message


@pytest.mark.parametrize("host", ["10.0.0.9", "evil.example", "127.0.0.1.evil.example", "a@[::1]"])
def test_address_of_another_machine_is_not_believed(data: Path, state: State, host: str) -> None:
    with hold_folder(data):
        state(address(http=f"http://{host}:80"))
        with pytest.raises(AntiphonError, match="not on this machine") as caught:
            read_address(data)
        assert caught.value.code is ErrorCode.NO_KERNEL
        state(address(sync=f"ws://{host}:80/sync"))
        with pytest.raises(AntiphonError, match="not on this machine"):
            read_address(data)


def test_folder_that_is_founded_while_it_is_looked_at_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    looked = trust_module.is_registered

    def looked_at_too_early(folder: Path) -> bool:
        monkeypatch.setattr(trust_module, "is_registered", looked)
        found(folder)
        return False

    data.mkdir(mode=0o700)
    monkeypatch.setattr(trust_module, "is_registered", looked_at_too_early)
    assert is_trusted(data)
