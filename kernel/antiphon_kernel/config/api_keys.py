"""Keys of providers: taken out of the environment, or read from files that only the user can read.

A key is in no error and no log: messages name the place that it comes from.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from antiphon_kernel.providers import ApiKey
from antiphon_kernel.providers.model_config import SERVICES

KEY_VARIABLES: Final = {kind: names for kind, (_, names, _) in SERVICES.items()}
"""Variables that hold the key of a kind of model; the first one that is set counts."""

_MAX_BYTES: Final = 10_000


def key_of(name: str, variables: Mapping[str, str]) -> ApiKey:
    """Return the key that a variable of the environment holds.

    Raises:
        ValueError: saying why and what to do, if it is not set, or holds no key.
    """
    value = variables.get(name, "").strip()
    if not value:
        raise ValueError(
            f"${name} is not set in the environment that the kernel was started in: set it, end"
            " the kernel and start it again"
        )
    return ApiKey(_checked(value, f"${name}"), f"${name}")


def first_key(names: Iterable[str], variables: Mapping[str, str]) -> ApiKey | None:
    """Return the key of the first variable that is set; None if none is.

    Raises:
        ValueError: saying why and what to do, if that variable holds no key.
    """
    given = (key_of(name, variables) for name in names if variables.get(name, "").strip())
    return next(given, None)


def read_key_file(path: Path) -> ApiKey:
    """Return the key in a file, which nobody but this user may read.

    Raises:
        ValueError: saying why and what to do, if others may read it, or it holds no key.
    """
    try:
        # A pipe must not keep the reader waiting.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(f"the key file {path} cannot be read: {reason}") from error
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"the key file {path} is no ordinary file")
        if status.st_uid != os.geteuid():
            raise ValueError(
                f"the key file {path} belongs to user {status.st_uid}, not to you (user"
                f" {os.geteuid()}): copy it to a file of your own"
            )
        if status.st_mode & 0o077:
            raise ValueError(
                f"others may read the key file {path} (mode {status.st_mode & 0o777:04o}):"
                f" `chmod 600 {path}`"
            )
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"the key file {path} has more than {_MAX_BYTES} bytes: that is no key")
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"the key file {path} is not UTF-8: that is no key") from error
    return ApiKey(_checked(text, f"the key file {path}"), str(path))


def hide_variables(names: Iterable[str]) -> None:
    """Take variables out of this process: what it starts does not get them.

    Where the system lets others read the environment that a process began with (Linux: `/proc`),
    their values are overwritten there too.
    """
    for name in names:
        if name not in os.environ:
            continue
        if sys.platform.startswith("linux"):
            library = ctypes.CDLL(None)
            library.getenv.restype = ctypes.c_void_p
            if address := library.getenv(os.fsencode(name)):
                ctypes.memset(address, ord("*"), len(ctypes.string_at(address)))
        del os.environ[name]


def _checked(key: str, place: str) -> str:
    """Return a key that can be sent in a header."""
    if not key:
        raise ValueError(f"{place} is empty: put the key there")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"{place} holds something else than one key: it has no spaces or lines")
    return key
