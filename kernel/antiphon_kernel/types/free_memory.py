"""Memory that is free, as the C library sees it."""

from __future__ import annotations

import ctypes


def return_free_memory() -> None:
    """Give the system back what was freed, where the C library keeps it for later (glibc).

    After large buffers that may be a hundred megabytes, for as long as the process lives.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
