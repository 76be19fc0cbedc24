"""Counters that merge: each CRDT client keeps its own partial sum, and the value is their sum.

Partial sums are decimal strings, so that integers of any length and decimals as they are written
add up exactly; a sum that is no integer is told as the nearest float.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final

from pycrdt import Map

EXACT: Final = Context(prec=1_000)
"""Digits enough for every sum of floats and of integers up to `MAX_DIGITS`."""

MAX_DIGITS: Final = 300
"""Of an increment, and of a counter: what a float can hold, too."""

_MAX_WRITTEN: Final = 2_000
"""Code points of a partial sum: the digits of `EXACT`, after the zeros of the least of them."""

_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""Numerals that every client reads as the same number."""


def as_decimal(amount: int | float) -> Decimal:
    """A number as it is written."""
    return Decimal(str(amount))


def add(counter: Map[Any], client_id: int, amount: Decimal) -> None:
    """Count on, as this client."""
    key = str(client_id)
    own = partial_sum(counter.get(key)) or Decimal(0)
    counter[key] = written(EXACT.add(own, amount))


def total(counter: Map[Any]) -> Decimal:
    """The value; partial sums that cannot be read count for nothing (see `unreadable`)."""
    result = Decimal(0)
    for partial in map(partial_sum, _values(counter)):
        if partial is not None:
            result = EXACT.add(result, partial)
    return result


def unreadable(counter: Map[Any]) -> bool:
    """Return whether a partial sum cannot be read."""
    return any(partial_sum(value) is None for value in _values(counter))


def as_number(value: Decimal) -> int | float:
    """A value as JSON has it."""
    beyond_floats = value.adjusted() >= MAX_DIGITS
    return int(value) if beyond_floats or value == value.to_integral_value() else float(value)


def _values(counter: Map[Any]) -> Iterable[Any]:
    return [value for _, value in sorted(counter.items())]


def partial_sum(stored: object) -> Decimal | None:
    """Return the partial sum of one client; None if what is stored is no number."""
    if not isinstance(stored, str) or len(stored) > _MAX_WRITTEN:
        return None
    if not _DECIMAL.fullmatch(stored):
        return None
    try:
        value = Decimal(stored)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) <= 2 * MAX_DIGITS else None


def written(value: Decimal) -> str:
    """A partial sum as it is stored."""
    return format(value.normalize(EXACT), "f")
