"""A filter of system calls that leaves a process TCP and pairs of its own, and no other sockets.

Landlock does not limit connections to unix sockets by their paths. The kernel and other programs of
the same user listen at such ones, and serve whoever is that user; a session needs none, since it
reaches its kernel by TCP. Like Landlock the filter holds for machine code as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from typing import Final, NamedTuple

_SET_NO_NEW_PRIVILEGES: Final = 38
_GET_SECCOMP: Final = 21
_SET_SECCOMP: Final = 22
_MODE_FILTER: Final = 2

_LOAD: Final = 0x20
_AND: Final = 0x54
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM

_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_FIRST, _SECOND, _THIRD = 16, 24, 32
"""Offsets of a call's number, of its architecture and of the low halves of its arguments."""

_TYPE: Final = 0xF
"""Bits of a socket's type that are no flags."""

_IO_URING_SETUP: Final = 425
"""Number of the call that would open sockets by the way, the same on every architecture."""
_OTHER_NUMBERS: Final = 0x4000_0000
"""From here on are the numbers of calls with addresses of 32 bits, on x86_64."""


class _Machine(NamedTuple):
    """Constants of the system calls of one architecture."""

    architecture: int
    socket: int
    socketpair: int


_MACHINES: Final = {
    "x86_64": _Machine(0xC000_003E, 41, 53),
    "aarch64": _Machine(0xC000_00B7, 198, 199),
}


def is_available() -> bool:
    if sys.platform != "linux" or platform.machine() not in _MACHINES or sys.maxsize < 2**32:
        return False
    return int(ctypes.CDLL(None).prctl(_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def restrict_sockets() -> None:
    """Let this process make TCP sockets and pairs of connected ones only.

    It applies to this thread and to all that it starts, and cannot be undone. Nothing happens where
    there is no filter for the system.

    Raises:
        OSError: if there is one and the system does not take it.
    """
    if not is_available():
        return
    steps = _filter(_MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(b"".join(steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        (_SET_SECCOMP, _MODE_FILTER, program, 0, 0),
    ):
        if library.prctl(*arguments) < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"filter of system calls: {os.strerror(number)}")


def _filter(machine: _Machine) -> list[bytes]:
    """Return the steps of the filter. A step that ends it is 0 steps ahead of what follows."""
    allow, refuse = _step(_RETURN, _ALLOW), _step(_RETURN, _REFUSE)

    def unless(comparison: int, value: int, end: bytes) -> list[bytes]:
        return [_step(comparison, value, if_true=1), end]

    def when(comparison: int, value: int, end: bytes) -> list[bytes]:
        return [_step(comparison, value, if_false=1), end]

    is_stream = [
        _step(_LOAD, _SECOND),
        _step(_AND, _TYPE),
        *unless(_IF_EQUAL, socket.SOCK_STREAM, refuse),
    ]
    # A pair that is no stream could be connected to another socket afterwards.
    pair = [*is_stream, allow]
    # Other protocols with streams are not what Landlock limits.
    tcp = [
        *is_stream,
        _step(_LOAD, _THIRD),
        *when(_IF_EQUAL, 0, allow),
        *unless(_IF_EQUAL, socket.IPPROTO_TCP, refuse),
        allow,
    ]
    is_tcp_family = [
        _step(_LOAD, _FIRST),
        _step(_IF_EQUAL, socket.AF_INET, if_true=2),
        *unless(_IF_EQUAL, socket.AF_INET6, refuse),
    ]
    return [
        _step(_LOAD, _ARCHITECTURE),
        *unless(_IF_EQUAL, machine.architecture, refuse),
        _step(_LOAD, _NUMBER),
        *when(_IF_AT_LEAST, _OTHER_NUMBERS, refuse),
        *when(_IF_EQUAL, _IO_URING_SETUP, refuse),
        _step(_IF_EQUAL, machine.socketpair, if_false=len(pair)),
        *pair,
        *unless(_IF_EQUAL, machine.socket, allow),
        *is_tcp_family,
        *tcp,
    ]


def _step(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
