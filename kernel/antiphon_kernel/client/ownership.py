"""Ownership of files: private ones are written, and folders that others can write in are found."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, no_kernel


def state_path(name: str) -> Path:
    """Return the folder `name` in this user's state folder, which need not exist.

    Raises:
        OSError: if the environment names no absolute path: a relative one would depend on the
            current folder, and on who has written there.
    """
    folder = user_state_path("antiphon") / name
    if not folder.is_absolute():
        raise NotADirectoryError(20, "the state folder's path is not absolute", str(folder))
    return folder


def make_state_folder(name: str) -> Path:
    """Return the folder `name` in this user's state folder, made where it is missing.

    Raises:
        OSError: if it cannot be made.
    """
    folder = state_path(name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def write_private(path: Path, text: str) -> None:
    """Put `text` into the file `path` in one step, with mode 0600 whatever the umask.

    Raises:
        OSError: if the folder cannot be written to.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


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
        raise no_kernel(
            f"No kernel can work in {data}: its path has {length} bytes, at most {LONGEST_PATH}"
            " are possible. Choose a folder with a shorter path.",
        )
    try:
        _check_folder(data)
    except OSError as error:
        raise no_kernel(
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
