"""One file of a project on disk: looked at, read, written, deleted.

A kill, at any moment, loses nothing, because of the order of the system calls. What is written
stands in a temporary file beside the target and is on disk (fsync) before the target is touched;
then the target is compared once more with what is expected, and one rename puts the new file in its
place. A new file gets its name by a link, which fails if somebody else has taken the name (on a
disk without links, an empty file takes the name first). A kill leaves the temporary file,
recognisable by its name and locked by nobody, and the next write of the same file removes it.

Where a rename would do harm (the file has other hard links) or is not possible, the file is written
in place: old and new content are first on disk in a copy, which is removed when the file has one of
them on disk. After a kill `restore_interrupted` finds the copy, and puts the old content back if
the file is half-written.

Nothing here knows asyncio: call it in a thread.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, NewType

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, permission_denied, storage_failed
from antiphon_kernel.types.project_files import (
    disk_errors,
    opened_file,
    opened_path,
    read_bytes,
    too_large,
)
from antiphon_kernel.types.project_paths import ProjectPath, find_path
from antiphon_kernel.types.quoting import quote

Digest = NewType("Digest", str)
"""By this, contents are told apart."""

TEMPORARY: Final = ".antiphon-"
"""Stands in the name of every file that is being written."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_PAUSES: Final = (0.0, 0.02, 0.05, 0.1, 0.3)
"""Seconds before readings of a file that changes while it is read."""
_TICK_NS: Final = 10_000_000
"""So long the clock of a disk may stand still."""
_ABSENT: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Why a folder on the way cannot be opened if it is gone, or something else has its name."""
_NO_RENAME: Final = {errno.EACCES, errno.EPERM, errno.EBUSY}
"""Nothing can be created in the folder, or the file is a mount of its own."""
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EXDEV}
_log = logging.getLogger(__name__)


class DiskKind(StrEnum):
    """Kind of what has the name of a file."""

    FILE = "file"
    MISSING = "missing"
    FOLDER = "folder"
    OTHER = "other"
    """A link, pipe, device or socket."""
    NO_PERMISSION = "no_permission"
    """A file that this process may not read, or one in a folder that is closed to it."""


@dataclass(frozen=True, slots=True)
class DiskState:
    """State of a file in one moment."""

    kind: DiskKind
    device: int = 0
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    mode: int = 0
    """Permissions, without the kind."""
    links: int = 0
    owner: int = -1
    group: int = -1
    changed_ns: int = 0
    """When its bytes, mode or names were changed last; nobody can set this."""

    def same_file(self, other: DiskState) -> bool:
        """Return whether both are one file, by whatever names."""
        is_there = self.links > 0 and other.links > 0
        return is_there and (self.device, self.inode) == (other.device, other.inode)


class ChangedOnDisk(AntiphonError):
    """A file is not what was expected, and was not written."""

    def __init__(self, path: ProjectPath) -> None:
        super().__init__(
            ErrorCode.STALE_VERSION,
            f"The file {quote(path.shown)} was changed on disk by somebody else: look at what it is"
            " now, and write again.",
        )


def digest_of(data: bytes) -> Digest:
    """Return the digest of a content, by which a write says what it expects."""
    return Digest(hashlib.sha256(data).hexdigest())


def look(path: ProjectPath) -> DiskState:
    """Return what is there now; that nothing is there, or cannot be read, is no error."""
    with disk_errors(path.shown, "looked at"):
        try:
            with path.folder() as folder:
                state = _look(folder, path.name)
                is_open = os.access(path.name, os.R_OK, dir_fd=folder)
        except PermissionError:
            return DiskState(DiskKind.NO_PERMISSION)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
            return DiskState(DiskKind.MISSING)
    is_closed = state.kind is DiskKind.FILE and not is_open
    return replace(state, kind=DiskKind.NO_PERMISSION) if is_closed else state


def read(path: ProjectPath, limit: int) -> tuple[DiskState, bytes]:
    """Read a file as it was in one moment, of up to `file_bytes`.

    Raises:
        AntiphonError: invalid_params, too_large; storage_failed, also if it never keeps still.
    """
    with disk_errors(path.shown, "read"), path.folder() as folder:
        state, data = _read(folder, path, limit)
    if len(data) > limit:
        raise too_large(path.shown, state.size, limit, "file_bytes")
    return state, data


def read_part(path: ProjectPath, start: int, size: int) -> tuple[DiskState, bytes]:
    """Read up to `size` bytes of a file from its byte `start`; none after its end.

    Raises:
        AntiphonError: invalid_params, storage_failed.
    """
    with opened_path(path, "read") as (_, file):
        return _state(os.fstat(file)), os.pread(file, size, start)


def write(
    path: ProjectPath, data: bytes, expected: Digest | None, *, copies: Path, limit: int
) -> DiskState:
    """Write a whole file, unless it is not what is expected.

    Args:
        expected: the content it has; None for a file that is not there, whose folders are made.
        copies: a folder of the kernel, for what is written in place.
        limit: bytes that are read to compare; who has more is not what is expected.

    Raises:
        ChangedOnDisk: nothing was written.
        AntiphonError: invalid_params, permission_denied, storage_failed. If the folder could not be
            put on disk in the end, the file is the new one nevertheless.
    """
    if expected is not None:
        state = look(path)
        if state.kind not in (DiskKind.FILE, DiskKind.NO_PERMISSION):
            raise ChangedOnDisk(path)
    with disk_errors(path.shown, "written"), path.folder(make=expected is None) as folder:
        _begin_write(folder, path.name)
        if expected is None:
            return _create(folder, path, data)
        state = _look(folder, path.name)
        if not state.mode & 0o222 or not os.access(path.name, os.W_OK, dir_fd=folder):
            raise permission_denied(
                f"The file {quote(path.shown)} is read-only (mode {state.mode:03o}): make it"
                " writable for this user first."
            )
        if state.links == 1:
            try:
                state = _replace(folder, path, data, expected, state, limit)
            except OSError as error:
                if error.errno not in _NO_RENAME:
                    raise
            else:
                os.fsync(folder)
                _place_of_copy(path, copies).unlink(missing_ok=True)
                return state
        return _overwrite(folder, path, data, expected, copies, limit)


def is_temporary(path: str) -> bool:
    """Return whether a path is that of a file that is being written, or that a kill has left."""
    return bool(re.search(rf"(^|/)\.[^/]+{re.escape(TEMPORARY)}[0-9a-f]{{16}}$", path))


def delete_to(path: ProjectPath, bin_folder: Path) -> Path:
    """Move a file into a folder of its own in the bin, and return where it is now.

    Raises:
        AntiphonError: invalid_params, storage_failed.
    """
    with opened_path(path, "deleted") as (folder, file):
        _begin_write(folder, path.name)
        kept = bin_folder / secrets.token_hex(8) / path.name
        kept.parent.mkdir(mode=0o700, parents=True)
        try:
            try:
                os.rename(path.name, kept, src_dir_fd=folder)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                before = os.fstat(file)
                _copy(file, kept)
                if not _is_still(folder, path.name, before):
                    raise _restless(path) from error
                _sync(kept.parent)
                _sync(bin_folder)
                os.unlink(path.name, dir_fd=folder)
        except (OSError, AntiphonError):
            shutil.rmtree(kept.parent)
            raise
        _sync(kept.parent)
        _sync(bin_folder)
        os.fsync(folder)
    return kept


def rename(path: ProjectPath, to: ProjectPath) -> None:
    """Give a file the name of one that is not there, whose folders are made.

    Raises:
        ChangedOnDisk: something has the name, and nothing was done.
        AntiphonError: invalid_params, storage_failed.
    """
    with opened_path(path, "renamed") as (source, _), to.folder(make=True) as target:
        try:
            os.link(path.name, to.name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            os.fsync(target)
            os.unlink(path.name, dir_fd=source)
        except FileExistsError:
            raise ChangedOnDisk(to) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.rename(path.name, to.name, src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)
        os.fsync(source)


def restore_interrupted(project: Path, copies: Path) -> list[ProjectPath]:
    """Undo the writes in place that were killed half-way, and return which files they were.

    A file that somebody has written since is left as it is. A copy that cannot be dealt with now is
    kept, and the log says so.
    """
    restored: list[ProjectPath] = []
    for copy in sorted(copies.glob("*.copy")):
        try:
            if (kept := _read_copy(copy)) is not None:
                path = find_path(project, kept[0])
                with disk_errors(path.shown, "restored"), path.folder() as folder:
                    if _restore(folder, path.name, *kept[1:]):
                        restored.append(path)
            copy.unlink()
        except (AntiphonError, OSError) as error:
            _log.warning("a write that was interrupted is not undone: %s (%s)", error, copy)
    return restored


def _look(folder: int, name: str) -> DiskState:
    try:
        return _state(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return DiskState(DiskKind.MISSING)


def _state(status: os.stat_result) -> DiskState:
    kinds = {stat.S_IFREG: DiskKind.FILE, stat.S_IFDIR: DiskKind.FOLDER}
    return DiskState(
        kinds.get(stat.S_IFMT(status.st_mode), DiskKind.OTHER),
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        stat.S_IMODE(status.st_mode),
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_ctime_ns,
    )


def _is_still(folder: int, name: str, before: os.stat_result) -> bool:
    """Return whether a name stands for the same file, unchanged."""
    after = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return _state(after) == _state(before)


def _read(folder: int, path: ProjectPath, limit: int) -> tuple[DiskState, bytes]:
    for pause in _PAUSES:
        time.sleep(pause)
        with opened_file(folder, path.name) as file:
            before = os.fstat(file)
            data = read_bytes(file, limit)
            if len(data) > limit:
                return _state(before), data
            # One more change within this tick would leave no trace.
            is_fresh = 0 <= time.time_ns() - before.st_mtime_ns < _TICK_NS
            is_whole = len(data) == before.st_size
            if is_whole and not is_fresh and _is_still(folder, path.name, before):
                return _state(before), data
    raise _restless(path)


def _restless(path: ProjectPath) -> AntiphonError:
    return storage_failed(
        f"The file {quote(path.shown)} is being written by another program: try again later.",
    )


def _compare(folder: int, path: ProjectPath, expected: Digest, limit: int) -> bytes:
    """Return the content of a file.

    Raises:
        ChangedOnDisk: it is not what is expected.
    """
    if _look(folder, path.name).kind is DiskKind.FILE:
        _, data = _read(folder, path, limit)
        if len(data) <= limit and digest_of(data) == expected:
            return data
    raise ChangedOnDisk(path)


def _create(folder: int, path: ProjectPath, data: bytes) -> DiskState:
    with _temporary_file(folder, path.name, data, None) as (file, temporary):
        try:
            os.link(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.unlink(temporary, dir_fd=folder)
        except FileExistsError:
            raise ChangedOnDisk(path) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(os.open(path.name, _NEW, 0o600, dir_fd=folder))
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
        return _state(os.fstat(file))


def _replace(
    folder: int, path: ProjectPath, data: bytes, expected: Digest, like: DiskState, limit: int
) -> DiskState:
    with _temporary_file(folder, path.name, data, like) as (file, temporary):
        _compare(folder, path, expected, limit)
        os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        return _state(os.fstat(file))


@contextmanager
def _temporary_file(
    folder: int, name: str, data: bytes, like: DiskState | None
) -> Iterator[tuple[int, str]]:
    """Write a new file that is on disk, and remove what is left of it."""
    temporary = f"{_temporary_start(name)}{secrets.token_hex(8)}"
    file = os.open(temporary, _NEW, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        with suppress(OSError):  # not every disk knows locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write(file, data)
        if like is not None:
            for owner in (like.owner, -1):
                with suppress(OSError):
                    os.fchown(file, owner, like.group)
                    break
            os.fchmod(file, like.mode)
            # macOS has no such calls in Python.
            with suppress(OSError, AttributeError), opened_file(folder, name) as old:
                for attribute in os.listxattr(old):  # access control lists among them
                    with suppress(OSError):
                        os.setxattr(file, attribute, os.getxattr(old, attribute))
        os.fsync(file)
        yield file, temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        os.close(file)


def _temporary_start(name: str) -> str:
    is_short = len(name.encode()) <= 200
    return f".{name if is_short else digest_of(name.encode())}{TEMPORARY}"


def _begin_write(folder: int, name: str) -> None:
    """Keep other kernels out of a folder as long as it is open; remove what a kill has left.

    Temporary files of writes that go on hold a lock.
    """
    with suppress(OSError):
        fcntl.flock(folder, fcntl.LOCK_EX)
    pattern = re.compile(re.escape(_temporary_start(name)) + "[0-9a-f]{16}")
    for one in os.listdir(folder):
        if pattern.fullmatch(one):
            with suppress(OSError), opened_file(folder, one) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(one, dir_fd=folder)


def _overwrite(
    folder: int, path: ProjectPath, data: bytes, expected: Digest, copies: Path, limit: int
) -> DiskState:
    with opened_file(folder, path.name, os.O_RDWR) as file:
        old = _compare(folder, path, expected, limit)
        copy = _keep_copy(path, old, data, copies)
        try:
            _compare(folder, path, expected, limit)
            if not _is_still(folder, path.name, os.fstat(file)):
                raise _restless(path)
        except (AntiphonError, OSError):
            copy.unlink()
            raise
        try:
            _put(file, data)
        except OSError:
            _put(file, old)  # if this fails too, the copy stays
            copy.unlink()
            raise
        copy.unlink()
        _sync(copies)
        return _state(os.fstat(file))


def _place_of_copy(path: ProjectPath, copies: Path) -> Path:
    """Return the one place of a file's copy: what an earlier write has left there is outdated."""
    return copies / f"{digest_of('/'.join(path.names).encode())}.copy"


def _keep_copy(path: ProjectPath, old: bytes, new: bytes, copies: Path) -> Path:
    """Put on disk how a file was and what it becomes."""
    facts = {"path": "/".join(path.names), "old": len(old), "digest": digest_of(old + new)}
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = _place_of_copy(path, copies)
    file = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write(file, json.dumps(facts).encode() + b"\n" + old + new)
        os.fsync(file)
        _sync(copies)
    except OSError:
        copy.unlink()
        raise
    finally:
        os.close(file)
    return copy


def _read_copy(copy: Path) -> tuple[str, bytes, bytes] | None:
    """Return path, old and new content; None if the copy was not finished, and nothing begun."""
    head, _, contents = copy.read_bytes().partition(b"\n")
    try:
        facts = json.loads(head)
    except ValueError:
        return None
    if digest_of(contents) != facts["digest"]:
        return None
    return facts["path"], contents[: facts["old"]], contents[facts["old"] :]


def _restore(folder: int, name: str, old: bytes, new: bytes) -> bool:
    """Put the old content back, if the file is on the way from the old content to the new one."""
    with opened_file(folder, name, os.O_RDWR) as file:
        shortest, longest = sorted((len(old), len(new)))
        there = read_bytes(file, longest)
        if there in (old, new) or not shortest <= len(there) <= longest:
            return False
        # After a power failure parts may be there in any order, and zeros for those that are not.
        for at, byte in enumerate(there):
            is_of_both = byte in old[at : at + 1] or byte in new[at : at + 1]
            if not is_of_both and (byte or at < len(old)):
                return False
        _put(file, old)
        return True


def _put(file: int, data: bytes) -> None:
    """Make this the content of an open file."""
    os.lseek(file, 0, os.SEEK_SET)
    _write(file, data)
    os.ftruncate(file, len(data))
    os.fsync(file)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _copy(file: int, target: Path) -> None:
    """Copy an open file to another disk, with its mode."""
    copy = os.open(target, _NEW, 0o600)
    try:
        while piece := os.read(file, 1_000_000):
            _write(copy, piece)
        os.fchmod(copy, stat.S_IMODE(os.fstat(file).st_mode))
        os.fsync(copy)
    finally:
        os.close(copy)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
