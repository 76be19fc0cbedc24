"""Confinement of a guest's process: by Python's audit events, by limits, and by the system.

The app does nothing of this by itself: it is told to leave files and programs of the machine alone.
This is the second line, for what is forgotten there. Audit events hold against what code does by
Python's functions, and say what is not allowed; Landlock and a filter of system calls, where the
system has them, against all that runs in the process.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from antiphon.guest import landlock, socket_filter

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
    readable = _readable(own)
    parts = urlsplit(kernel)
    landlock.restrict(own, readable, parts.port)
    socket_filter.restrict_sockets()
    sys.addaudithook(_hook(own, readable, (parts.hostname, parts.port)))


def _readable(own: str) -> tuple[str, ...]:
    """Return what may be read: the program's code, some files of the system, and one's own."""
    code: set[str] = {
        sys.prefix,
        sys.base_prefix,
        str(Path(__file__).parents[2]),
        *filter(None, sys.path),
    }
    bundled = Path(__file__).parents[3] / "themes"  # of a checkout
    return tuple(os.path.realpath(one) for one in (*code, *_OF_THE_SYSTEM, str(bundled), own))


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
                raise PermissionError(f"a session over SSH does not open {path!r}")
        elif event in _FORBIDDEN:
            raise PermissionError(f"a session over SSH does nothing like {event}")
        elif event in _WRITING:
            paths, folders = _WRITING[event]
            is_relative = any(args[index] != -1 for index in folders)
            if is_relative or not all(is_within(args[index], (own,)) for index in paths):
                raise PermissionError(f"a session over SSH writes in its own folder only: {event}")
        elif event in _READING:
            if not is_within(args[0], readable):
                raise PermissionError("a session over SSH reads its own folder only")
        elif event == "socket.connect" and args[1] != address:
            raise PermissionError(f"a session over SSH connects to its kernel only: {args[1]!r}")
        elif event == "os.kill" and args[0] != os.getpid():
            raise PermissionError("a session over SSH signals itself only")

    return check
