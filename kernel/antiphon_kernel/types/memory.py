"""Memory of the process: what is given back, pauses of the collector, fields made when needed."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any


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


class LazyFields:
    """Base of classes with slots that lack the values of some of them at first.

    The method `_make_NAME` returns the value of the field NAME. `cached_property` needs a dict,
    which takes 270 bytes for each object.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # types are checked as those of the fields

        def __getattr__(self, name: str) -> Any:
            """Make a field; called only while its slot is empty."""
            make = getattr(type(self), f"_make_{name}", None)
            if make is None:
                raise AttributeError(f"{type(self).__name__} has no {name}")
            value = make(self)
            object.__setattr__(self, name, value)
            return value
