"""Confinement of a guest's process, by Python's audit events.

The app does nothing of this by itself: it is told to leave files and programs of the machine alone.
This is the second line, for what is forgotten there. It holds against Python code, not against
machine code that somebody has brought into the process.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

MEMORY_BYTES: Final = 1_500_000_000
"""Data that one session may hold; with more it ends, and only it."""

_FORBIDDEN: Final = frozenset(
    {
        "ctypes.dlopen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.startfile",
        "os.system",
        "pty.spawn",
        "socket.bind",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
        "syslog.openlog",
        "webbrowser.open",
    }
)
"""Events of what no session does at all."""

_WRITING: Final[Mapping[str, tuple[int, ...]]] = {
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (0, 1),
    "os.truncate": (0,),
    "os.utime": (0,),
    "sqlite3.connect": (0,),
}
"""By event, which of its arguments are paths that are written to."""

_READING: Final[Mapping[str, tuple[int, ...]]] = {"os.listdir": (0,), "os.scandir": (0,)}

_WRITE_FLAGS: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_OF_THE_SYSTEM: Final = (
    "/dev/null",
    "/dev/urandom",
    "/etc/hosts",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/usr/share/locale",
    "/usr/share/zoneinfo",
)


def confine(folder: Path, kernel: str) -> None:
    """Allow this process its own folder, the program's code and the kernel; cannot be undone.

    Args:
        kernel: address of the kernel, `http://HOST:PORT`.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    sys.addaudithook(_hook(folder, kernel))


def _hook(folder: Path, kernel: str) -> Callable[[str, tuple[Any, ...]], None]:
    own = os.path.realpath(folder)
    code: set[str] = {
        sys.prefix,
        sys.base_prefix,
        str(Path(__file__).parents[2]),
        *filter(None, sys.path),
    }
    bundled = Path(__file__).parents[3] / "themes"  # of a checkout
    readable = tuple(os.path.realpath(one) for one in (*code, *_OF_THE_SYSTEM, str(bundled), own))
    parts = urlsplit(kernel)
    address = (parts.hostname, parts.port)

    def is_within(path: Any, places: tuple[str, ...]) -> bool:
        if isinstance(path, int):  # open already
            return True
        real = os.path.realpath(os.fsdecode(path if path is not None else "."))
        return any(real == place or real.startswith(place + os.sep) for place in places)

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            places = (own, "/dev/null") if flags & _WRITE_FLAGS else readable
            if not is_within(path, places):
                raise PermissionError(f"a session over SSH does not open {path!r}")
        elif event in _FORBIDDEN:
            raise PermissionError(f"a session over SSH does nothing like {event}")
        elif event in _WRITING:
            if not all(is_within(args[index], (own,)) for index in _WRITING[event]):
                raise PermissionError(f"a session over SSH writes in its own folder only: {event}")
        elif event in _READING:
            if not all(is_within(args[index], readable) for index in _READING[event]):
                raise PermissionError("a session over SSH reads its own folder only")
        elif event == "socket.connect" and args[1] != address:
            raise PermissionError(f"a session over SSH connects to its kernel only: {args[1]!r}")
        elif event == "os.kill" and args[0] != os.getpid():
            raise PermissionError("a session over SSH signals itself only")

    return check
