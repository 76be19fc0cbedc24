"""Confinement of a guest's process: by Python's audit events, by limits, and by the system.

The app does nothing of this by itself: it is told to leave files and programs of the machine alone.
This is the second line, for what is forgotten there. Audit events hold against what code does by
Python's functions, and say what is not allowed; Landlock and a filter of system calls, where the
system has them, against all that runs in the process, also for calls relative to an open folder and
for machine code. Landlock is there from version 5.13 of Linux on. Each version knows further kinds
of access; what one does not know it does not deny.

Landlock does not limit connections to unix sockets by their paths. The kernel and other programs of
the same user listen at such ones, and serve whoever is that user; a session needs none, since it
reaches its kernel by TCP. So the filter leaves a process TCP and pairs of its own, and no other
sockets.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

MEMORY_BYTES: Final = 1_500_000_000
"""Data that one session may hold; with more it ends, and only it."""

FILE_BYTES: Final = 50_000_000
"""Length of a file that a session writes."""

OPEN_FILES: Final = 256

_LIMITS: Final = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_DATA: MEMORY_BYTES,
    resource.RLIMIT_FSIZE: FILE_BYTES,
    resource.RLIMIT_NOFILE: OPEN_FILES,
}
"""There is none of processes: it would count all of the user's, and threads with them."""

_FORBIDDEN: Final = frozenset(
    {
        "ctypes.dlopen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.killpg",
        "os.link",
        "os.posix_spawn",
        "os.startfile",
        "os.symlink",
        "os.system",
        "pty.spawn",
        "resource.prlimit",
        "resource.setrlimit",
        "socket.bind",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
        "syslog.openlog",
        "webbrowser.open",
    }
)
"""Events of what no session does at all."""

_WRITING: Final[Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "os.chdir": ((0,), ()),
    "os.chmod": ((0,), (2,)),
    "os.chown": ((0,), (3,)),
    "os.mkdir": ((0,), (2,)),
    "os.remove": ((0,), (1,)),
    "os.removexattr": ((0,), ()),
    "os.rename": ((0, 1), (2, 3)),
    "os.rmdir": ((0,), (1,)),
    "os.setxattr": ((0,), ()),
    "os.truncate": ((0,), ()),
    "os.utime": ((0,), (3,)),
    "sqlite3.connect": ((0,), ()),
}
"""By event, which of its arguments are paths of what is written, or from where, and which are open
folders that these are relative to."""

_READING: Final = ("os.listdir", "os.scandir")

_WRITE_FLAGS: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_OF_THE_SYSTEM: Final = (
    "/dev/null",
    "/dev/urandom",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/locale",
    "/usr/share/zoneinfo",
)


def confine(folder: Path, kernel: str) -> None:
    """Allow this process its own folder, the program's code and the kernel at `http://HOST:PORT`.

    It cannot be undone.
    """
    for limit, value in _LIMITS.items():
        resource.setrlimit(limit, (value, value))
    own = os.path.realpath(folder)
    # The program's code, some files of the system, and one's own.
    code: set[str] = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}
    bundled = str(Path(__file__).parents[3] / "themes")  # of a checkout
    places = (*code.union(filter(None, sys.path)), *_OF_THE_SYSTEM, bundled, own)
    readable = tuple(map(os.path.realpath, places))
    parts = urlsplit(kernel)
    restrict_files(own, readable, parts.port)
    restrict_sockets()
    sys.addaudithook(_hook(own, readable, (parts.hostname, parts.port)))


def _hook(
    own: str, readable: tuple[str, ...], address: tuple[str | None, int | None]
) -> Callable[[str, tuple[Any, ...]], None]:
    def is_within(path: Any, places: tuple[str, ...]) -> bool:
        if isinstance(path, int):  # open already
            return True
        real = os.path.realpath(os.fsdecode(path if path is not None else "."))
        return any(real == place or real.startswith(place + os.sep) for place in places)

    def may_open(path: Any, flags: int) -> bool:
        """Return whether a file may be opened, whatever open folder its path is relative to.

        Which one that is, the event does not say: so only folders in one's own can be open, and no
        relative path leads out of them.
        """
        if isinstance(path, int):
            return True
        meant = Path(os.fsdecode(path))
        if not meant.is_absolute() and ".." in meant.parts:
            return False
        if flags & _WRITE_FLAGS:
            return is_within(path, (own, "/dev/null"))
        return is_within(path, (own,) if meant.is_dir() else readable)

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if not may_open(path, flags):
                raise PermissionError(f"a guest's session does not open {path!r}")
        elif event in _FORBIDDEN:
            raise PermissionError(f"a guest's session does nothing like {event}")
        elif event in _WRITING:
            paths, folders = _WRITING[event]
            is_relative = any(args[index] != -1 for index in folders)
            if is_relative or not all(is_within(args[index], (own,)) for index in paths):
                raise PermissionError(f"a guest's session writes in its own folder only: {event}")
        elif event in _READING:
            if not is_within(args[0], readable):
                raise PermissionError("a guest's session reads its own folder only")
        elif event == "socket.connect" and args[1] != address:
            raise PermissionError(f"a guest's session connects to its kernel only: {args[1]!r}")
        elif event == "os.kill" and args[0] != os.getpid():
            raise PermissionError("a guest's session signals itself only")

    return check


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


def landlock_version() -> int:
    """Return the version of Landlock that the system has; 0 if it has none."""
    library = ctypes.CDLL(None, use_errno=True)
    asked = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, int(asked))


def restrict_files(own: str, readable: Iterable[str], port: int | None) -> None:
    """Leave this process a folder to write in, places to read, and one port to connect to.

    It applies to this thread and to all that it starts, and cannot be undone. Nothing happens where
    the system has no Landlock.

    Raises:
        OSError: if the system has it and does not do that.
    """
    library, version = ctypes.CDLL(None, use_errno=True), landlock_version()
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


def _checked(result: int, what: str = "Landlock") -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


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


def has_socket_filter() -> bool:
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
    if not has_socket_filter():
        return
    steps = _socket_filter(_MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(b"".join(steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        (_SET_SECCOMP, _MODE_FILTER, program, 0, 0),
    ):
        _checked(library.prctl(*arguments), "filter of system calls")


def _socket_filter(machine: _Machine) -> list[bytes]:
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
