"""System calls, counted: before any of them the work dies, or something else happens."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any
from unittest.mock import patch

CALLS = (
    *("open", "close", "read", "write", "lseek", "ftruncate", "fsync", "stat", "fstat", "access"),
    *("listdir", "mkdir", "rmdir", "rename", "link", "unlink", "fchmod", "fchown"),
)
PIECE = 16
"""Bytes that one call writes, so that a write takes several."""


@contextmanager
def before_each_call(act: Callable[[int, str, object], None]) -> Iterator[None]:
    """Call `act` before every system call, with its number, name and first argument."""
    numbers = count()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            act(next(numbers), name, args[0])
            if name == "write":
                return real(args[0], args[1][:PIECE])
            if name == "fsync":
                return None  # which takes its time, and makes no difference to a kill
            return real(*args, **options)

        return call

    patches = [patch.object(os, name, counted(name, getattr(os, name))) for name in CALLS]
    patches.append(patch.object(fcntl, "flock", counted("flock", fcntl.flock)))
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


class _Killed(BaseException):
    """The end of work that is killed."""


def killed_at_every_call(
    prepare: Callable[[], object], work: Callable[[], object]
) -> Iterator[int]:
    """Do the work until it is killed before its first call, again until its second one, …

    Yield after each death how many calls were made. To die before a call is to die after the one
    before it; the last time it goes on until it is done.
    """
    for number in count():
        prepare()
        was_killed = killed_before(number, work)
        yield number
        if not was_killed:
            return


def killed_before(last: int | str, work: Callable[[], object]) -> bool:
    """Do the work as far as a process gets that is killed before a call, by its number or its name.

    From there on it makes no call, also none that cleans up, and what it has open is closed. Return
    whether it was killed: the work may end before.
    """
    is_dead, opened, real = False, set[int](), os.open

    def note(*args: Any, **options: Any) -> int:
        opened.add(file := real(*args, **options))
        return file

    def die(number: int, name: str, _: object) -> None:
        nonlocal is_dead
        is_dead = is_dead or last in (number, name)
        if is_dead:
            raise _Killed

    with suppress(_Killed), patch.object(os, "open", note), before_each_call(die):
        work()
    for file in opened:
        with suppress(OSError):  # the work has closed it
            os.close(file)
    return is_dead
