"""Work as a number that no other process on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType, FunctionType
from typing import Any

import pytest


@contextmanager
def counted_calls(of: Callable[..., Any] | None = None) -> Iterator[Callable[[], int]]:
    """Count the calls of a Python function, or of all; yields what tells their number."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    if of is None:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield lambda: count
        finally:
            sys.setprofile(before)
        return

    @wraps(of)
    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return of(*args, **kwargs)

    assert isinstance(of, FunctionType)
    with pytest.MonkeyPatch.context() as patch:
        for owner in _owners(of):
            patch.setattr(owner, of.__name__, counting)
        yield lambda: count


def _owners(of: FunctionType) -> list[object]:
    """Return the class of a method, or the modules that have a function under its name."""
    owner: object = sys.modules[of.__module__]
    for name in of.__qualname__.split(".")[:-1]:
        owner = getattr(owner, name)
    others: list[object] = [one for one in sys.modules.values() if vars(one).get(of.__name__) is of]
    return others or [owner]


async def calls_of(doing: Awaitable[Any]) -> int:
    """How many Python functions are called on the event loop until it is done."""
    with counted_calls() as count:
        await doing
    return count()
