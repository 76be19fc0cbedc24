"""Memory that the C library keeps for later; fields that are made when first asked for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import pytest

from antiphon_kernel.types.memory import LazyFields, return_free_memory
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


@dataclass(frozen=True, slots=True)
class _Words(LazyFields):
    text: str
    each: list[str] = field(init=False, repr=False, compare=False)

    def _make_each(self) -> list[str]:
        return self.text.split()


def test_field_that_is_asked_for_is_made_once() -> None:
    words = _Words("a b")
    assert words.each == ["a", "b"]
    assert words.each is words.each
    assert words == _Words("a b")


def test_field_that_nothing_makes_is_not_there() -> None:
    with pytest.raises(AttributeError, match="_Words has no other"):
        getattr(_Words("a"), "other")  # noqa: B009  the type checker knows that it is not there
