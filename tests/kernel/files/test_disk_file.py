"""One file on disk: looked at, read, written as expected or not at all, deleted and put back."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.files.disk_file import (
    ChangedOnDisk,
    DiskKind,
    delete_to,
    look,
    read,
    rename,
)
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.project_paths import find_path
from tests.errors import raises
from tests.kernel.files.conftest import LIMIT, MODE, OLD, FileOnDisk
from tests.kernel.files.system_calls import before_each_call


def _linked_elsewhere(file: FileOnDisk) -> None:
    file.place.parent.rename(file.project / "moved")
    file.place.parent.symlink_to("moved")


OTHERS: dict[str, tuple[Callable[[FileOnDisk], object], DiskKind]] = {
    "folder": (lambda file: file.place.mkdir(), DiskKind.FOLDER),
    "pipe": (lambda file: os.mkfifo(file.place), DiskKind.OTHER),
    "link": (lambda file: file.place.symlink_to("/etc/passwd"), DiskKind.OTHER),
    "nothing": (lambda file: None, DiskKind.MISSING),
    "no-folder": (lambda file: file.place.parent.rmdir(), DiskKind.MISSING),
    "linked-folder": (_linked_elsewhere, DiskKind.MISSING),
}
others = pytest.mark.parametrize(("replace", "kind"), OTHERS.values(), ids=OTHERS)


@others
def test_file_that_became_something_else_is_seen_and_neither_read_nor_written(
    file: FileOnDisk, replace: Callable[[FileOnDisk], object], kind: DiskKind
) -> None:
    file.place.unlink()
    replace(file)
    assert look(file.path).kind is kind
    with raises(ErrorCode.INVALID_PARAMS):
        read(file.path, LIMIT)
    with raises(ErrorCode.INVALID_PARAMS):
        delete_to(file.path, file.bin)
    with pytest.raises(ChangedOnDisk) as caught:
        file.write(b"new")
    assert caught.value.code is ErrorCode.STALE_VERSION


def test_state_says_which_file_it_is(file: FileOnDisk) -> None:
    file.put_linked()
    state, status = look(file.path), file.place.stat()
    assert (state.kind, state.size, state.mode, state.links) == (DiskKind.FILE, len(OLD), MODE, 2)
    assert (state.inode, state.mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert look(find_path(file.project, "b.py")).same_file(state)
    missing = look(find_path(file.project, "c.py"))
    assert not missing.same_file(state) and not missing.same_file(missing)


def test_file_that_may_not_be_read_is_seen(
    file: FileOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as for anybody but root
    state = look(file.path)
    assert (state.kind, state.size) == (DiskKind.NO_PERMISSION, len(OLD))

    def closed(_: int, name: str, __: object) -> None:
        if name == "open":
            raise PermissionError(errno.EACCES, "Permission denied")

    with before_each_call(closed):
        assert look(file.path).kind is DiskKind.NO_PERMISSION
        with raises(ErrorCode.INVALID_PARAMS) as caught:
            read(file.path, LIMIT)
    assert "this user may not" in caught.value.message


def test_reading_returns_state_and_bytes_up_to_the_limit(file: FileOnDisk) -> None:
    assert read(file.path, len(OLD)) == (look(file.path), OLD)
    with raises(ErrorCode.TOO_LARGE) as caught:
        read(file.path, len(OLD) - 1)
    assert caught.value.details == {
        "limit": len(OLD) - 1,
        "limit_name": "file_bytes",
        "found": len(OLD),
    }


@pytest.mark.parametrize("changes", [1, 1_000])
def test_file_that_changes_while_it_is_read_is_read_again_or_refused(
    file: FileOnDisk, changes: int
) -> None:
    texts = iter([b"text %d" % number for number in range(changes)])

    def change(_: int, name: str, __: object) -> None:
        if name == "read" and (text := next(texts, None)) is not None:
            file.place.write_bytes(text)

    with before_each_call(change):
        if changes == 1:
            assert read(file.path, LIMIT)[1] == b"text 0"
        else:
            with raises(ErrorCode.STORAGE_FAILED) as caught:
                read(file.path, LIMIT)
            assert "being written by another program" in caught.value.message


def test_file_that_has_just_been_written_is_read_when_the_next_change_would_show(
    file: FileOnDisk,
) -> None:
    file.place.write_bytes(b"new")
    state, _ = read(file.path, LIMIT)
    assert time.time_ns() - state.mtime_ns >= 10_000_000


@pytest.mark.parametrize("data", [b"", b"new", b"\xff\0" * 300])
def test_write_replaces_the_file_with_its_mode_and_owner(file: FileOnDisk, data: bytes) -> None:
    if os.geteuid() == 0:
        os.chown(file.place, 1234, 2345)
    before = look(file.path)
    state = file.write(data)
    assert (file.place.read_bytes(), file.left()) == (data, [])
    assert state == look(file.path) and not state.same_file(before)
    assert (state.mode, state.owner, state.group) == (MODE, before.owner, before.group)


def test_two_kernels_that_write_one_file_again_and_again_lose_nothing(file: FileOnDisk) -> None:
    def write(letter: str) -> None:
        for _ in range(15):
            while True:
                there = file.place.read_bytes()
                with suppress(ChangedOnDisk):
                    file.write(there + letter.encode(), there)
                    break

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, "xy"))
    text = file.place.read_text()
    assert (text.count("x"), text.count("y")) == (15 + OLD.count(b"x"), 15 + OLD.count(b"y"))


def test_write_keeps_extended_attributes(file: FileOnDisk) -> None:
    try:
        os.setxattr(file.place, "user.note", b"kept")
    except OSError:
        pytest.skip("this disk has no extended attributes")
    file.write(b"new")
    assert os.getxattr(file.place, "user.note") == b"kept"


@pytest.mark.parametrize("make", [FileOnDisk.put, FileOnDisk.put_linked])
@pytest.mark.parametrize("theirs", [b"theirs", b"x" * 1_001])
def test_write_of_a_changed_file_writes_nothing(
    file: FileOnDisk, make: Callable[[FileOnDisk], None], theirs: bytes
) -> None:
    make(file)
    file.place.write_bytes(theirs)
    with pytest.raises(ChangedOnDisk):
        file.write(b"new")
    assert (file.place.read_bytes(), file.left()) == (theirs, [])


def test_write_through_a_link_replaces_its_target(file: FileOnDisk) -> None:
    link = file.project / "link.py"
    link.symlink_to("src/a.py")
    file.path = find_path(file.project, "link.py")
    file.write(b"new")
    assert link.is_symlink() and file.place.read_bytes() == b"new"


@pytest.mark.parametrize(("call", "number"), [("open", errno.EACCES), ("rename", errno.EBUSY)])
def test_write_where_nothing_can_be_renamed_is_in_place(
    file: FileOnDisk, call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = look(file.path), getattr(os, call)

    def refused(name: Any, *args: Any, **options: Any) -> Any:
        if ".antiphon-" in str(name):
            raise OSError(number, os.strerror(number))
        return real(name, *args, **options)

    monkeypatch.setattr(os, call, refused)
    assert file.write(b"new").same_file(before)
    assert (file.place.read_bytes(), file.left()) == (b"new", [])


@pytest.mark.parametrize("mode", [0o444, 0o500])
def test_write_of_a_read_only_file_is_refused(file: FileOnDisk, mode: int) -> None:
    file.place.chmod(mode)
    with raises(ErrorCode.PERMISSION_DENIED) as caught:
        file.write(b"new")
    assert f"(mode {mode:03o})" in caught.value.message
    assert (file.place.read_bytes(), file.left()) == (OLD, [])


@pytest.mark.parametrize("links", [True, False], ids=["links", "disk-without-links"])
def test_new_file_is_made_with_its_folders_and_overwrites_nothing(
    file: FileOnDisk, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    file.path = find_path(file.project, "new/folders/b.py")
    before = os.umask(0o027)
    try:
        state = file.write(b"new", None)
    finally:
        os.umask(before)
    file.place = file.project / "new" / "folders" / "b.py"
    assert (state, state.mode, state.links) == (look(file.path), 0o640, 1)
    assert (file.place.read_bytes(), file.left()) == (b"new", [])
    with raises(ErrorCode.STALE_VERSION if links else ErrorCode.INVALID_PARAMS):
        file.write(b"newer", None)
    assert (file.place.read_bytes(), file.left()) == (b"new", [])


def test_new_file_in_a_folder_that_became_a_link_is_not_made_outside(file: FileOnDisk) -> None:
    file.place.unlink()
    _linked_elsewhere(file)
    with raises(ErrorCode.INVALID_PARAMS) as caught:
        file.write(b"new", None)
    assert "replaced by a link" in caught.value.message
    assert list((file.project / "moved").iterdir()) == []


@pytest.mark.parametrize("moment", ["open", "fsync", "rename"])
def test_folder_that_is_swapped_during_a_write_leads_nowhere_else(
    file: FileOnDisk, moment: str
) -> None:
    outside = file.project.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(OLD)
    folder, moved = file.place.parent, file.project / "moved"

    swaps = iter([True])

    def swap(_: int, name: str, __: object) -> None:
        if name == moment and next(swaps, False):
            folder.rename(moved)
            folder.symlink_to(outside)

    with before_each_call(swap), suppress(ChangedOnDisk):
        file.write(b"new")
    assert [one.name for one in outside.iterdir()] == ["a.py"]
    assert (outside / "a.py").read_bytes() == OLD
    assert [one.name for one in moved.iterdir()] == ["a.py"]


def test_temporary_file_of_a_write_that_goes_on_is_left_alone(file: FileOnDisk) -> None:
    seen: list[str] = []

    def look_on(_: int, name: str, __: object) -> None:
        if name == "fchmod":
            seen.extend(file.left())

    with before_each_call(look_on):
        file.write(b"new")
    other, another = (
        file.place.with_name(seen[0]),
        file.place.with_name(".b.py.antiphon-" + "0" * 16),
    )
    other.touch()
    another.touch()
    file.write(b"newer", b"new")
    assert file.left() == [another.name]
    with other.open("wb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        file.write(b"newest", b"newer")
        assert sorted(file.left()) == sorted([other.name, another.name])


def test_file_whose_name_is_as_long_as_can_be_is_written(file: FileOnDisk) -> None:
    file.path = find_path(file.project, "src/" + "x" * 255)
    file.write(b"new", None)
    assert file.write(b"newer", b"new").size == 5


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a disk of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no disk can be mounted")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("make", [FileOnDisk.put, FileOnDisk.put_linked])
def test_write_on_a_full_disk_is_an_error_and_leaves_the_old_file(
    full_disk: Path, tmp_path: Path, make: Callable[[FileOnDisk], None]
) -> None:
    file = FileOnDisk(full_disk)
    file.copies = tmp_path / "copies"
    make(file)
    with raises(ErrorCode.STORAGE_FAILED) as caught:
        file.write(b"x" * 100_000)
    assert "the disk is full" in caught.value.message
    assert (file.place.read_bytes(), file.left()) == (OLD, [])


def test_renamed_file_is_the_same_and_takes_no_name_that_another_has(file: FileOnDisk) -> None:
    before, taken = look(file.path), find_path(file.project, "b.py")
    moved = find_path(file.project, "other/c.py")
    rename(file.path, moved)
    assert look(moved).same_file(before) and look(file.path).kind is DiskKind.MISSING
    file.other_link.write_bytes(b"theirs")
    with pytest.raises(ChangedOnDisk):
        rename(moved, taken)
    assert (file.other_link.read_bytes(), look(moved).links) == (b"theirs", 1)


def test_copy_in_the_bin_is_removed_if_the_file_changes_meanwhile(
    file: FileOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(*_: Any, **__: Any) -> None:
        file.place.write_bytes(b"theirs")
        raise OSError(errno.EXDEV, "another disk")

    def changed_later(_: int, name: str, __: object) -> None:
        if name == "fchmod":
            file.place.write_bytes(b"theirs")

    monkeypatch.setattr(os, "rename", change)
    with before_each_call(changed_later), raises(ErrorCode.STORAGE_FAILED):
        delete_to(file.path, file.bin)
    assert (file.place.read_bytes(), list(file.bin.iterdir())) == (b"theirs", [])
