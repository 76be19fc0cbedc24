"""Landlock: limits that Linux itself keeps for a process, from version 5.13 on.

Unlike audit events they hold for whatever runs in the process, also for calls relative to an open
folder and for machine code. Each version knows further kinds of access; what one does not know it
does not deny.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
"""Numbers of the system calls, the same on every architecture."""

_SET_NO_NEW_PRIVILEGES: Final = 38
_RULE_BENEATH: Final = 1
_RULE_PORT: Final = 2

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_FOLDER: Final = 1 << 3
_SPECIAL_FILES: Final = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
"""Devices, sockets, pipes and symbolic links."""
_TRUNCATE: Final = 1 << 14
_OF_FILES: Final = _WRITE_FILE | _READ_FILE | _TRUNCATE

_FILE_ACCESS: Final = (13, 14, 15, 15, 16)
"""Number of kinds of access to files, by version."""
_TCP_SINCE: Final = 4
_TCP: Final = 0b11
"""Binding and connecting."""
_CONNECT: Final = 0b10
_SCOPES_SINCE: Final = 6
_SCOPES: Final = 0b11
"""Abstract sockets and signals of other processes."""


def system_version() -> int:
    """Return the version of Landlock that the system has; 0 if it has none."""
    library = ctypes.CDLL(None, use_errno=True)
    asked = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, int(asked))


def restrict(own: str, readable: Iterable[str], port: int | None) -> None:
    """Leave this process a folder to write in, places to read, and one port to connect to.

    It applies to this thread and to all that it starts, and cannot be undone. Nothing happens where
    the system has no Landlock.

    Raises:
        OSError: if the system has it and does not do that.
    """
    library, version = ctypes.CDLL(None, use_errno=True), system_version()
    if not version:
        return
    files = (1 << _FILE_ACCESS[min(version, len(_FILE_ACCESS)) - 1]) - 1
    rules = struct.pack(
        "=QQQ",
        files,
        _TCP if version >= _TCP_SINCE else 0,
        _SCOPES if version >= _SCOPES_SINCE else 0,
    )
    ruleset = _checked(library.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0))
    try:
        writing = files & ~_EXECUTE & ~_SPECIAL_FILES
        allowed = {own: writing, "/dev/null": files & _OF_FILES}
        for place in readable:
            allowed.setdefault(place, _READ_FILE | _READ_FOLDER)
        for place, access in allowed.items():
            _allow(library, ruleset, place, access)
        if version >= _TCP_SINCE and port is not None:
            rule = struct.pack("=QQ", _CONNECT, port)
            _checked(library.syscall(_ADD_RULE, ruleset, _RULE_PORT, rule, 0))
        _checked(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(library.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(library: ctypes.CDLL, ruleset: int, place: str, access: int) -> None:
    """Allow access to a file, or to all below a folder; a place that is not there needs no rule."""
    try:
        file = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not Path(place).is_dir():
            access &= _OF_FILES
        rule = struct.pack("=Qi", access, file)
        _checked(library.syscall(_ADD_RULE, ruleset, _RULE_BENEATH, rule, 0))
    finally:
        os.close(file)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
