"""Files and folders of this user's own: readable by nobody else, replaced in one step."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from platformdirs import user_state_path


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
