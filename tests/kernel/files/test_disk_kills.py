"""Kills and failures at every system call of a write."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from antiphon_kernel.files.disk_file import (
    ChangedOnDisk,
    DiskKind,
    delete_to,
    look,
    rename,
    restore_interrupted,
)
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.project_paths import find_path
from tests.kernel.files.conftest import MODE, OLD, FileOnDisk
from tests.kernel.files.system_calls import before_each_call, killed_at_every_call, killed_before

SHORTER, LONGER = b"a new text", b"another new text, which is longer: " + OLD[::-1]


def test_write_killed_at_any_call_leaves_the_old_or_the_new_file(file: FileOnDisk) -> None:
    """How long the text is makes no difference to a file that takes the place of the old one."""
    seen, leftovers = [], 0
    for _ in killed_at_every_call(file.put, lambda: file.write(LONGER)):
        seen.append(file.place.read_bytes())
        leftovers += len(file.left())
        assert file.mode() == MODE
        file.write(b"next", seen[-1])
        assert (file.place.read_bytes(), file.mode(), file.left()) == (b"next", MODE, [])
    change = seen.index(LONGER)
    assert change > 10 and leftovers > 5, "the kills came too early"
    assert set(seen[:change]) == {OLD} and set(seen[change:]) == {LONGER}


def test_new_file_killed_at_any_call_is_missing_or_whole(file: FileOnDisk) -> None:
    folder = file.place.parent
    seen = set()
    for _ in killed_at_every_call(
        lambda: shutil.rmtree(folder), lambda: file.write(LONGER, expected=None)
    ):
        is_there = look(file.path).kind is DiskKind.FILE
        there = file.place.read_bytes() if is_there else None
        seen.add(there)
        state = file.write(b"next", there)
        assert (file.place.read_bytes(), state.links, file.left()) == (b"next", 1, [])
    assert seen == {None, LONGER}


@pytest.mark.parametrize("new", [SHORTER, LONGER, b""], ids=["shorter", "longer", "empty"])
def test_write_in_place_killed_at_any_call_is_undone_or_done(file: FileOnDisk, new: bytes) -> None:
    restored = 0
    for _ in killed_at_every_call(file.put_linked, lambda: file.write(new)):
        before = file.place.read_bytes()
        paths = restore_interrupted(file.project, file.copies)
        restored += len(paths)
        after = file.place.read_bytes()
        assert after == (OLD if paths else before) and after in (OLD, new)
        assert file.place.samefile(file.other_link) and file.mode() == MODE
        assert file.left() == []
    assert (restored > 0) == (new != b"")


def _killed_half_way(file: FileOnDisk, new: bytes = SHORTER) -> None:
    """Leave the file with all that is to be written and the rest of what was, and the copy."""
    file.put_linked()
    assert killed_before("ftruncate", lambda: file.write(new))
    assert file.place.read_bytes() == new + OLD[len(new) :]


def test_restoring_killed_at_any_call_goes_on_at_the_next_start(file: FileOnDisk) -> None:
    _killed_half_way(file)
    half, copy = file.place.read_bytes(), next(file.copies.iterdir())
    kept = copy.read_bytes()

    def prepare() -> None:
        file.place.write_bytes(half)
        copy.write_bytes(kept)

    for _ in killed_at_every_call(prepare, lambda: restore_interrupted(file.project, file.copies)):
        restore_interrupted(file.project, file.copies)
        assert (file.place.read_bytes(), file.left()) == (OLD, [])


@pytest.mark.parametrize("since", [b"somebody's", OLD + b"more", OLD[:-1] + b"!"])
def test_restoring_leaves_a_file_that_somebody_has_written_since(
    file: FileOnDisk, since: bytes
) -> None:
    _killed_half_way(file)
    file.put(since)
    assert restore_interrupted(file.project, file.copies) == []
    assert (file.place.read_bytes(), file.left()) == (since, [])


@pytest.mark.parametrize("make", [FileOnDisk.put, FileOnDisk.put_linked])
def test_copy_of_a_write_that_was_killed_is_outdated_by_the_next_write(
    file: FileOnDisk, make: Callable[[FileOnDisk], None]
) -> None:
    _killed_half_way(file)
    make(file)
    file.write(SHORTER[:4] + OLD[4:])
    assert file.left() == []


def test_restoring_takes_zeros_and_parts_in_any_order_for_half_written(file: FileOnDisk) -> None:
    _killed_half_way(file, LONGER)
    zeros = bytes(len(LONGER) - len(OLD) - 3)
    file.put(OLD[:9] + LONGER[9:15] + OLD[15:] + zeros)
    assert restore_interrupted(file.project, file.copies) == [file.path]
    assert file.place.read_bytes() == OLD


def test_restoring_keeps_the_copy_of_a_file_that_is_gone(
    file: FileOnDisk, caplog: pytest.LogCaptureFixture
) -> None:
    _killed_half_way(file)
    file.place.unlink()
    assert restore_interrupted(file.project, file.copies) == []
    assert len(file.left()) == 1
    assert "src/a.py" in caplog.text
    assert restore_interrupted(file.project, file.copies / "none") == []


@pytest.fixture(params=["same-disk", "another-disk"])
def kept_in(file: FileOnDisk, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield a bin."""
    if request.param == "same-disk":
        yield file.bin
        return
    device = file.project.stat().st_dev
    for folder in (Path("/dev/shm"), Path("/var/tmp"), Path.home()):
        if folder.is_dir() and folder.stat().st_dev != device:
            with TemporaryDirectory(dir=folder) as made:
                yield Path(made) / "bin"
                return
    pytest.skip("there is one disk")


def test_deleting_and_renaming_killed_at_any_call_lose_nothing(
    file: FileOnDisk, kept_in: Path
) -> None:
    moved = file.project / "other" / "b.py"

    def prepare() -> None:
        shutil.rmtree(kept_in, ignore_errors=True)
        shutil.rmtree(moved.parent, ignore_errors=True)
        file.put()

    def is_whole() -> bool:
        places = [one for one in (file.place, moved, *kept_in.glob("*/a.py")) if one.exists()]
        return any((one.read_bytes(), one.stat().st_mode & 0o777) == (OLD, MODE) for one in places)

    for _ in killed_at_every_call(prepare, lambda: delete_to(file.path, kept_in)):
        assert is_whole()
    assert not file.place.exists()
    target = find_path(file.project, "other/b.py")
    for _ in killed_at_every_call(prepare, lambda: rename(file.path, target)):
        assert is_whole()
    assert moved.read_bytes() == OLD and not file.place.exists()


FAILING = ("open", "write", "fsync", "rename", "link", "fchmod", "ftruncate", "mkdir", "listdir")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("way", ["replaced", "new", "in-place"])
def test_write_that_fails_at_any_call_is_a_clear_error_and_leaves_nothing_behind(
    file: FileOnDisk, way: str, number: int
) -> None:
    old = None if way == "new" else OLD
    said: list[tuple[ErrorCode | str, str]] = []
    for at in range(200):
        shutil.rmtree(file.place.parent)
        file.put_linked() if way == "in-place" else file.put()
        if way == "new":
            file.place.unlink()
        made = 0

        def fail(_: int, name: str, __: object, at: int = at) -> None:
            nonlocal made
            made += name in FAILING
            if name in FAILING and made == at + 1:
                raise OSError(number, os.strerror(number))

        try:
            with before_each_call(fail):
                file.write(LONGER, old)
        except AntiphonError as error:
            said.append((error.code, error.message))
        there = file.place.read_bytes() if file.place.exists() else None
        assert there in (old, LONGER)
        assert [one for one in file.left() if "antiphon" in one or "copy" in one] == []
        if made <= at:
            break
    else:
        pytest.fail("the write never ended")
    assert len(said) >= 3, "the failures are not noticed"
    code = ErrorCode.INVALID_PARAMS if number == errno.EACCES else ErrorCode.STORAGE_FAILED
    assert {one for one, _ in said} == {code}
    clear = re.compile(r"The file 'src/a.py' of the project cannot be (written|looked at): .*")
    assert all(clear.fullmatch(message) for _, message in said)


@pytest.mark.parametrize("moment", ["rename", "link", "lseek"])
def test_change_before_the_last_look_is_found_and_nothing_is_written(
    file: FileOnDisk, moment: str
) -> None:
    """The call before the last comparison is the sync of what was written, or of the copy."""
    if moment == "lseek":
        file.put_linked()
    elif moment == "link":
        file.place.unlink()

    def change(_: int, name: str, __: object) -> None:
        if name == ("link" if moment == "link" else "fsync"):
            file.place.write_bytes(b"theirs")

    with before_each_call(change), pytest.raises(ChangedOnDisk):
        file.write(LONGER, None if moment == "link" else OLD)
    assert file.place.read_bytes() == b"theirs"
    assert file.left() == []


COPIED = "write sync-file sync-folder"


@pytest.mark.parametrize(
    ("way", "order"),
    [
        ("replaced", "write fchmod sync-file read rename sync-folder"),
        ("new", "mkdir sync-folder write sync-file link unlink sync-folder unlink"),
        ("in-place", f"read {COPIED} read lseek write ftruncate sync-file unlink sync-folder"),
    ],
)
def test_what_a_kill_must_not_lose_is_on_disk_before_the_next_step(
    file: FileOnDisk, way: str, order: str
) -> None:
    if way == "new":
        shutil.rmtree(file.place.parent)
    elif way == "in-place":
        file.put_linked()
        file.copies.mkdir(parents=True)
    made: list[str] = []
    status_of = os.fstat

    def note(_: int, name: str, descriptor: object) -> None:
        if name == "fsync":
            assert isinstance(descriptor, int)
            is_folder = stat.S_ISDIR(status_of(descriptor).st_mode)
            name = "sync-folder" if is_folder else "sync-file"
        if name in order.split() and made[-1:] != [name]:
            made.append(name)

    with before_each_call(note):
        file.write(LONGER, None if way == "new" else OLD)
    assert made == order.split()
