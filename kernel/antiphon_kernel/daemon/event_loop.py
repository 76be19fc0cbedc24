"""The event loop that a kernel runs in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeVar

_FASTER: Final = "uvloop"
"""A loop of the same behaviour that needs less processor time for each message."""

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` like `asyncio.run`, in the faster loop where that is installed."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the faster loop's factory; None where it is not installed."""
    if find_spec(_FASTER) is None:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = import_module(_FASTER).new_event_loop
    return make
