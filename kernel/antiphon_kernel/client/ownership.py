"""Ownership and permissions of a data folder: whether another user could have written in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from antiphon_kernel.types.errors import AntiphonError, ErrorCode

LOCK_FILE: Final = "kernel.lock"
"""In a data folder: locked for as long as a kernel works there, and holds its process id."""

SOCKET_FILE: Final = "kernel.sock"
"""In a data folder: the unix socket of its kernel, if it could be made there."""

LONGEST_PATH: Final = 480
"""Bytes of a data folder's absolute path: SQLite takes 511 with the name of a file in it."""

_KNOWN: Final = ("journal.db", "auth.db", "kernel.", "folder.id", "guest", "ssh.")
"""The names of our files in a data folder begin like this."""

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def known_files(data: Path) -> list[str]:
    """Return the names of our files in the data folder; none if there is no such folder."""
    try:
        return [path.name for path in data.iterdir() if path.name.startswith(_KNOWN)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def check_ownership(data: Path) -> None:
    """Check that nobody but this user can have written in the data folder, if there is one.

    The folder and our files in it must belong to this user, must not be writable by group or
    others and must not be symbolic links; our files must be files, not pipes that nobody ends or
    folders. A folder above it that everybody may write in must be
    sticky, as `/tmp` is: in any other one everybody can put another folder in its place.

    Raises:
        AntiphonError: untrusted_folder, saying what is wrong and how to put it right; no_kernel if
            the path is too long for SQLite, or cannot be looked at.
    """
    length = len(os.fsencode(data.absolute()))
    if length > LONGEST_PATH:
        raise AntiphonError(
            ErrorCode.NO_KERNEL,
            f"No kernel can work in {data}: its path has {length} bytes, at most {LONGEST_PATH}"
            " are possible. Choose a folder with a shorter path.",
        )
    try:
        _check_folder(data)
    except OSError as error:
        raise AntiphonError(
            ErrorCode.NO_KERNEL,
            f"No kernel can work in {data}: {error.strerror} ({error.filename}). Choose a folder"
            " that you may use.",
        ) from error


def _check_folder(data: Path) -> None:
    try:
        status = data.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(status.st_mode):
        raise untrusted(data, f"it is a symbolic link: name the folder {data.resolve()} instead")
    _check_entry(data, data, status)
    for above in Path(os.path.realpath(data)).parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise untrusted(
                data,
                f"everybody may write in {above}, and so put another folder in its place:"
                f" `chmod o-w {above}` ends that",
            )
    for name in known_files(data):
        path = data / name
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            raise untrusted(data, f"{path} is a symbolic link: put the file itself there")
        if not stat.S_ISREG(status.st_mode) and (
            name != SOCKET_FILE or not stat.S_ISSOCK(status.st_mode)
        ):
            raise untrusted(data, f"{path} is no ordinary file: move it away")
        _check_entry(data, path, status)


def _check_entry(data: Path, path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise untrusted(
            data,
            f"{path} belongs to user {status.st_uid}, not to you (user {os.geteuid()}): if you"
            f" need what is in there, copy {data} to a folder of yours and trust the copy",
        )
    if status.st_mode & _OTHERS_WRITE:
        raise untrusted(
            data,
            f"other users may write in {path}: see that nobody has, then `chmod go-w {path}`",
        )


def untrusted(data: Path, reason: str) -> AntiphonError:
    """Return the error with which a data folder is left alone."""
    return AntiphonError(
        ErrorCode.UNTRUSTED_FOLDER,
        f"The data folder {data} is not used: {reason}.",
        data=str(data),
    )
