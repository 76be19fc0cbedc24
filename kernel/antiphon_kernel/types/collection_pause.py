"""Pauses of the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_pauses = 0


@contextmanager
def without_collection() -> Iterator[None]:
    """Nothing that is made here is garbage: looking for some takes half of the time."""
    global _pauses  # noqa: PLW0603  the collector is the process's, and so is this count
    _pauses += 1
    gc.disable()
    try:
        yield
    finally:
        _pauses -= 1
        if not _pauses:
            gc.enable()
