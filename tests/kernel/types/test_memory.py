"""Memory that the C library keeps for later."""

from __future__ import annotations

import ctypes

import pytest

from antiphon_kernel.types.memory import return_free_memory
from tests.processes import memory_of

SIZE = 100_000
"""Bytes of a piece: below what the C library gets from the system by itself."""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library")
def test_free_memory_goes_back_to_the_system() -> None:
    pieces = [bytearray(SIZE) for _ in range(500)]
    del pieces[:-1]  # the last one keeps the C library from giving back what is below it
    before = memory_of()
    return_free_memory()
    assert before - memory_of() > 400 * SIZE
