"""Counters of clients, read as every other client reads them, or not at all."""

from __future__ import annotations

from decimal import Decimal

import pytest

from antiphon_kernel.document.counters import as_decimal, as_number, partial_sum, written


@pytest.mark.parametrize(
    "stored", ["٣", "1_000", " 7 ", "7\n", "+7", ".5", "5.", "", "NaN", "Infinity", "0x1", 5, None]
)
def test_partial_sum_of_ambiguous_text_is_none(stored: object) -> None:
    assert partial_sum(stored) is None


@pytest.mark.parametrize("amount", [0.1, -5e-324, 1e299, 10**299, -(10**299), 1e-7, 2.5e21, 7])
def test_partial_sum_of_written_amount_is_equal(amount: int | float) -> None:
    assert partial_sum(written(as_decimal(amount))) == as_decimal(amount)


def test_sum_beyond_floats_is_told_as_a_whole_number() -> None:
    assert as_number(Decimal("1" + "0" * 400 + ".5")) == 10**400
