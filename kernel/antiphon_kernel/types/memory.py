"""Memory of the process: what is given back, and pauses of the collector."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager


def return_free_memory() -> None:
    """Give the system back what was freed, where the C library keeps it for later (glibc).

    After large buffers that may be a hundred megabytes, for as long as the process lives.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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
