"""Tests of fields that are made when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from antiphon_kernel.types.lazy_fields import LazyFields


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
