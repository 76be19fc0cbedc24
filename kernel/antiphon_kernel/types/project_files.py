"""Reading files of a project, and what errors of its disk mean."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, storage_failed
from antiphon_kernel.types.project_paths import OUTSIDE, ProjectPath, find_path, unusable
from antiphon_kernel.types.quoting import quote, truncate

_PIECE: Final = 1_000_000

_MEANINGS: Final = {
    errno.EACCES: "this user may not: change its permissions or those of its folders",
    errno.EPERM: "this user may not: change its permissions or those of its folders",
    errno.ENAMETOOLONG: "a name in it is too long: choose a shorter one",
    errno.ENOTDIR: "one of its folders is none, or was replaced by a link: look at it again",
    errno.ELOOP: "it was replaced by a link: look at it again",
    errno.EISDIR: "it is not a file: name a file",
}
_FAILURES: Final = {
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "this user's share of the disk is full: make room",
    errno.EFBIG: "it would be larger than a file may be here",
    errno.EROFS: "its disk can only be read",
    errno.EIO: "its disk is broken: look at the disk",
}


def read_project_file(project: Path, path: str, limit: int, limit_name: str) -> bytes:
    """Read a file of a project.

    Args:
        path: relative to the project's root.
        limit: bytes it may have.
        limit_name: the name of that limit.

    Raises:
        AntiphonError: invalid_params, too_large.
    """
    if path.startswith("/"):
        raise unusable(path, OUTSIDE)
    found = find_path(project, path)
    with opened_path(found, "read") as (_, file):
        data = read_bytes(file, limit)
        if len(data) > limit:
            raise too_large(path, os.fstat(file).st_size, limit, limit_name)
    return data


@contextmanager
def opened_path(path: ProjectPath, done: str) -> Iterator[tuple[int, int]]:
    """Open the folder of a file of a project, and the file, to be `done` something with.

    Raises:
        AntiphonError: as `disk_errors`.
    """
    with (
        disk_errors(path.shown, done),
        path.folder() as folder,
        opened_file(folder, path.name) as file,
    ):
        yield folder, file


@contextmanager
def opened_file(folder: int, name: str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file of a folder; neither a link nor anything else than a file.

    Raises:
        OSError: if that is not possible.
    """
    # A pipe or a device must not keep the reader waiting.
    file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EISDIR, "it is not a file")
        yield file
    finally:
        os.close(file)


def read_bytes(file: int, limit: int) -> bytes:
    """Read a file to its end; more than `limit` bytes of it if it has more."""
    data = bytearray()
    while len(data) <= limit and (piece := os.read(file, min(_PIECE, limit + 1 - len(data)))):
        data += piece
    return bytes(data)


def too_large(path: str, size: int, limit: int, limit_name: str) -> AntiphonError:
    """Return the error for a file that has more bytes than it may have."""
    return AntiphonError(
        ErrorCode.TOO_LARGE,
        f"The file {quote(path)} has {size} bytes, {limit} are allowed: take a part of it.",
        limit=limit,
        limit_name=limit_name,
        found=size,
    )


@contextmanager
def disk_errors(path: str, done: str) -> Iterator[None]:
    """Turn errors of the disk into errors that say what cannot be done (`read`, `written`)."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        meaning = _FAILURES.get(number) or _MEANINGS.get(number) or error.strerror or str(error)
        message = f"The file {quote(path)} of the project cannot be {done}: {meaning}."
        if number in _FAILURES:
            raise storage_failed(message) from error
        raise invalid_params(message, field="path", found=truncate(path)) from error
