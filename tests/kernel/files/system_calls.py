"""System calls, counted: before any of them the process dies, or something else happens."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def killed_at_every_call(
    prepare: Callable[[], object], work: Callable[[], object]
) -> Iterator[int]:
    """Do the work in processes that are killed before their first call, their second one, …

    Yield after each death how many calls were made. To die before a call is to die after the one
    before it; the last process lives until its work is done.
    """
    for number in count():
        prepare()
        was_killed = killed_before(number, work)
        yield number
        if not was_killed:
            return


def killed_before(last: int | str, work: Callable[[], object]) -> bool:
    """Do the work in a process that is killed before a call, by its number or its name.

    Return whether it was: the work may end before.
    """
    process = os.fork()
    if process == 0:
        _work_in_child(last, work)
    _, status = os.waitpid(process, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, "the work failed"
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True


def _work_in_child(last: int | str, work: Callable[[], object]) -> None:
    def die(number: int, name: str, _: object) -> None:
        if last in (number, name):
            os.kill(os.getpid(), signal.SIGKILL)

    leave = os._exit
    try:
        with before_each_call(die):
            work()
        leave(0)
    finally:
        leave(1)
